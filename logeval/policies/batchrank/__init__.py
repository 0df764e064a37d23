"""BatchRank."""
