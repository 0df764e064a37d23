"""logeval: offline evaluation of ranking bandits over real search logs."""

__version__ = "0.1.0"
