"""The variances of examination, against differences of the likelihood."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

from logeval.clicks.estimation import browsing
from logeval.clicks.estimation.browsing import fold
from logeval.clicks.estimation.patterns import patterns_of
from tests.clicks.examples import random_model, statistics_of


@pytest.mark.parametrize("rows", [1, 100_000])
def test_variances_are_the_inverse_of_the_information(rows, monkeypatch):
    """Of two queries with a prior, in which the first position is taken as known."""
    monkeypatch.setattr(browsing, "CHUNK", rows)
    rng = np.random.default_rng(4)
    K, G = 3, 2
    truths = [random_model("PBM", rng, L=4, K=K, low=0.2, high=0.8) for _ in range(G)]
    data = patterns_of(statistics_of(truths, 80, rng, spread=3.0))
    group = np.arange(G)
    cells = fold(data, lambda block: block.shown.position, K, G, group)
    a, b = rng.uniform(2, 5, (2, data.I + G * K))  # of items, then of cells

    def likelihood(z):
        x = expit(z)
        w, e = x[: data.I], x[data.I :].reshape(G, K)
        total = a @ np.log(x) + b @ np.log(1 - x)
        p = w[data.items] * e[data.query]
        return total + data.count @ np.log(np.where(data.clicks, p, 1 - p)).sum(axis=1)

    x = rng.uniform(0.3, 0.7, data.I + G * K)
    fixed = np.tile(np.arange(K) == 0, G)
    free = np.flatnonzero(~np.concatenate([np.zeros(data.I, bool), fixed]))
    z, unit = logit(x), 1e-3 * np.eye(len(x))[free]
    information = np.array(
        [
            [
                likelihood(z + i - j) + likelihood(z - i + j)
                - likelihood(z + i + j) - likelihood(z - i - j)
                for j in unit
            ]
            for i in unit
        ]
    ) / 4e-6  # fmt: skip
    expected = np.zeros(len(x))
    expected[free] = np.diag(np.linalg.inv(information))

    w, e = np.split(x, [data.I])
    strength = np.split(a + b, [data.I])
    found = browsing.examination_variances(cells, w, e, *strength, fixed)
    assert found == pytest.approx(expected[data.I :], rel=1e-4)
