"""Log formats: one file and one line of ``registry`` each."""
