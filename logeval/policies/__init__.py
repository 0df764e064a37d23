"""Policies: one file per family."""
