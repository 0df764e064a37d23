"""Out again: judgments, propensities and training files from fitted click models."""
