"""models -> environments."""
