"""TopRank: numbers worked out by hand, and its regret."""

import math

import numpy as np
import pytest
from scipy import stats

from logeval.policies import toprank
from tests.policies.running import SETTING_A, make, steps, users_of


def test_toprank_needs_29_one_sided_clicks():
    log_cn = math.log(toprank.C * 1e5)
    assert toprank.C == pytest.approx(3.3437, abs=5e-5)
    assert not toprank.is_below(28, 28, log_cn)
    assert toprank.is_below(29, 29, log_cn)


def test_toprank_shows_every_item_everywhere_until_it_knows_better():
    users = users_of(SETTING_A, runs=200)
    policy = make("TopRank", users, 10**9)
    count = np.zeros((10, 5))
    for _, lists, _ in steps(policy, users, 40):
        for k in range(5):
            count[:, k] += np.bincount(lists[:, k], minlength=10)
    assert not policy.memory.blocks.beats.any()
    assert stats.chisquare(count.ravel()).pvalue > 1e-4


def test_toprank_has_the_regret_of_independent_clicks():
    """Setting A, n = 10^4: 648 +- 8 of an independent prototype (100 runs); clicks that share
    one uniform give 509, a budget without the square root less."""
    users = users_of(SETTING_A, runs=20, seed=1)
    policy = make("TopRank", users, 10_000)
    regret = np.zeros(20)
    for _, lists, _ in steps(policy, users, 10_000):
        regret += users.regret(lists)
    error = math.hypot(regret.std(ddof=1) / math.sqrt(20), 8)
    assert abs(regret.mean() - 648) < 3.5 * error
