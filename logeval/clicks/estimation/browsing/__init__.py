"""Browsing users (PBM, UBM): EM or direct maximisation, and what clicks say of examination."""
