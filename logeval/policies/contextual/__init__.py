"""What the rooms of the contextual track share: rounds, regressions, the bases of policies."""
