"""Predictive checks: the clicks of a model's users beside those of the log."""
