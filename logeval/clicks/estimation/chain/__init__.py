"""Chains: exact EM, and what clicks say of the parameters that the items of a query share."""
