"""Rankers whose value is asked for: what they are, and how they are read."""
