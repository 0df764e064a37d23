"""GL-CDCM, LR."""
