"""Environments and policies -> runs."""

from logeval.evaluation.api import evaluate
from logeval.evaluation.results import Runs

__all__ = ["Runs", "evaluate"]
