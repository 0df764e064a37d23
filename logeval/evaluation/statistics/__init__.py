"""What the numbers of a runs table are worth: intervals, comparisons, and what they depend on."""
