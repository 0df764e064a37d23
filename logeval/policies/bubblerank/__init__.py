"""BubbleRank."""
