"""PBM-UCB, PBM-PIE, PBM-TS, BC-MPTS: bandits of the position-based model."""
