"""Exact inference for chains, against brute force."""

from __future__ import annotations

import numpy as np
import pytest

from logeval.clicks.estimation.chain import Chains, tallied
from logeval.clicks.estimation.patterns import Patterns
from tests.clicks.examples import all_patterns


def test_tally_is_the_average_over_all_ways_the_user_may_have_left():
    """Chain inference against brute force over the position where the user left."""
    rng = np.random.default_rng(1)
    K, skip = 4, 0.7
    w, stay = rng.uniform(0.1, 0.9, K), rng.uniform(0.1, 0.9, K)
    for c in all_patterns(K):
        weights, examined = [], []
        for stop in range(K):  # the last examined position
            if c[stop + 1 :].any():
                continue
            p = 1.0
            for k in range(stop + 1):
                p *= w[k] if c[k] else 1 - w[k]
                go = stay[k] if c[k] else skip
                if k < K - 1:
                    p *= go if k < stop else 1 - go
            weights.append(p)
            examined.append(np.arange(K) <= stop)
        total = np.sum(weights)
        expected = np.array(weights) @ np.array(examined, dtype=float) / total
        one = Patterns(
            ["q"], np.zeros(1, int), np.arange(K)[None], c[None] > 0, np.array([K]),  # type: ignore[list-item]
            np.ones(1), np.arange(K), np.array([0, K]),
        )  # fmt: skip
        users = Chains(w, stay, np.ones((1, K)), np.array([skip]))
        t = tallied(one, np.zeros(1, int), np.ones(1, bool), users)
        assert t.examined == pytest.approx(expected)
        assert t.log_likelihood[0] == pytest.approx(np.log(total))
