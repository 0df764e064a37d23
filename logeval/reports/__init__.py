"""Tables -> figures, and the report."""
