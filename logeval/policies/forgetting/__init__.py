"""CascadeDUCB, CascadeSWUCB, D-dcmKL-UCB, SW-dcmKL-UCB."""
