"""Clicks that several test files fit models to."""

from __future__ import annotations

import numpy as np
import pytest

from logeval.clicks.estimation.patterns import Patterns, patterns_of
from tests.clicks.examples import random_model, statistics_of, three_queries


@pytest.fixture(scope="session")
def data() -> Patterns:
    """Clicks of a DCM with low termination, which no other model explains exactly."""
    rng = np.random.default_rng(5)
    models = [random_model("DCM", rng, L=8, K=5, low=0.1, high=0.6) for _ in range(3)]
    return patterns_of(statistics_of(models, 400, rng))


@pytest.fixture(scope="session")
def log(tmp_path_factory):
    """Clicks of the DCMs of three queries, in two files."""
    return three_queries(tmp_path_factory.mktemp("log"))
