"""CascadeLinUCB, CascadeLinTS, C3-UCB."""
