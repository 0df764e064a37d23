"""How good fitted click models are."""
