"""serps -> click statistics -> parameters with their uncertainty."""
