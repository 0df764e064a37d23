"""Environments and policies -> runs."""

from logeval.evaluate.api import evaluate
from logeval.evaluate.results import Runs

__all__ = ["Runs", "evaluate"]
