"""UCB1, KL-UCB, TS and UCB1Elim on all pairs of an item and a position."""
