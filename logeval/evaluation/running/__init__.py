"""Runs: which policies meet which problems, the loop, and the table that keeps what they earned."""
