"""serps -> click statistics -> models."""
