"""The contextual track: lists of items that have features."""
