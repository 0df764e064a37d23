"""Tables of any kind -> serps, counts or placements, by SQL."""
