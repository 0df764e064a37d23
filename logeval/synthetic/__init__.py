"""Synthetic logs: a known click model -> a raw log in a challenge format."""
