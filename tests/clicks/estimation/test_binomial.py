"""A binomial number from a uniform one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from logeval.clicks.estimation.beta import Split, binomial, share_of


@pytest.mark.parametrize(("n", "p"), [(1, 0.3), (2, 0.9), (7, 0.02), (40, 0.5), (5000, 0.3)])
def test_every_number_has_its_share_of_the_uniform_ones(n, p):
    grid = (np.arange(40_000) + 0.5) / 40_000
    found = np.array([binomial(float(n), p, u) for u in grid])
    shares = np.bincount(found.astype(int), minlength=n + 1) / len(grid)
    assert shares == pytest.approx(stats.binom.pmf(np.arange(n + 1), n, p), abs=2 / len(grid))


def test_certain_and_impossible_events():
    for u in (0.0, 0.5, 1.0 - 1e-16):
        assert binomial(9.0, 0.0, u) == binomial(0.0, 0.4, u) == 0.0
        assert binomial(9.0, 1.0, u) == 9.0
        assert 0.0 <= binomial(9.0, 0.4, u) <= 9.0


def test_without_a_uniform_number_it_is_the_expected_one():
    assert share_of(8.0, 0.25, -1.0) == 2.0
    assert Split()(np.array([8.0, 2.0]), np.array([0.25, 0.5])).tolist() == [2.0, 1.0]
    drawn = Split(np.random.default_rng(0))(np.full(20_000, 8.0), np.full(20_000, 0.25))
    assert drawn.mean() == pytest.approx(2.0, abs=5 * np.sqrt(1.5 / 20_000))
    assert drawn.var() == pytest.approx(1.5, rel=0.05)
