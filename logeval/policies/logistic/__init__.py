"""LogisticTS, UCB-GLM."""
