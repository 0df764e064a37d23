"""What several rooms share. ``replica`` and ``paper_*`` serve the pseudocode, the rest kernels."""
