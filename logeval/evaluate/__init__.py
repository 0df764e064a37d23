"""environments and policies -> runs."""
