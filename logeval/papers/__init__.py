"""One file per paper: its experiments as data, its published numbers, its checks."""
