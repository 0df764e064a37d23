"""TopRank."""
