"""Rank1ElimKL, Rank1Elim."""
