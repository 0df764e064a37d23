"""Every policy as the paper's pseudocode in plain NumPy, one replica at a time."""
