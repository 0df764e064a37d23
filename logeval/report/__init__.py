"""runs -> figures and tables."""
