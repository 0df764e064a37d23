"""CTS, TS-Cascade."""
