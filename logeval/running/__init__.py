"""How work is run: processes or a cluster, kernels, progress, signals, random numbers."""
