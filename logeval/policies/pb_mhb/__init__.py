"""PB-MHB."""
