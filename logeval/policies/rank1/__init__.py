"""Policies that choose one item and one position."""
