"""Policies that know features of the items: one file per family."""
