"""UniRank."""
