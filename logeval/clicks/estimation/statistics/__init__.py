"""serps -> click statistics, kept beside the log, in memory or on disk."""
