"""What a log can say: which models it identifies, examination from swaps, how sure it is."""
