"""Policies that show lists."""
