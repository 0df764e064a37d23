"""What a result says, in words: one file for each type of result but runs (``reports.verdict``)."""
