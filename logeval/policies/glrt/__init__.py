"""GLRT-CascadeUCB, GLRT-CascadeKL-UCB."""
