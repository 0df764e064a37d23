"""CascadeUCB1, CascadeKL-UCB, dcmKL-UCB, First-Click, Last-Click."""
