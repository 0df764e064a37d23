"""RankedUCB1, RankedKL-UCB, RankedExp3."""
