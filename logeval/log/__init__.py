"""Raw log -> serps."""
