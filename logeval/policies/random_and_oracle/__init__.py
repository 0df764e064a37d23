"""Random, Oracle."""
