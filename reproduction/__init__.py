"""The papers' experiments again: what they printed as TOML, and one runner."""
