"""GRAB, S-GRAB, KL-CombUCB1."""
