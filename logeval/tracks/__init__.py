"""Tracks: what a step of a policy is, and the environments that answer it."""
