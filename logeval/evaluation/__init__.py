"""Environments and policies -> runs."""
