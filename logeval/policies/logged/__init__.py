"""Today's ranker: the lists of the log."""
