"""Traps of published code: one uniform for all positions, ties by the order of storage."""

import math

import numpy as np
import pytest
from scipy import stats

from logeval.tracks.registry import synthetic_problem
from tests.policies.running import SETTING_A, make, users_of


def test_clicks_at_different_positions_are_independent():
    """One uniform for all positions would make both or neither be clicked."""
    users = users_of(synthetic_problem("PBM(w=0.5/0.5,e=1/1)"), runs=4000)
    clicks = users.step(np.tile([0, 1], (4000, 1)))
    both = clicks.all(axis=1).mean()
    assert abs(both - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 4000)


FIRST_LISTS = [
    "CTS", "TS-Cascade", "TopRank", "UniRank", "BatchRank", "PBM-UCB", "PBM-PIE", "PBM-TS",
    "BC-MPTS", "PB-MHB", "GRAB", "S-GRAB", "KL-CombUCB1",
]  # fmt: skip


@pytest.mark.parametrize("name", FIRST_LISTS)
def test_ties_are_broken_at_random(name):
    """The first list shows every item at every position equally often."""
    users = users_of(SETTING_A, runs=400)
    lists = users.labels.items(make(name, users, 1000).recommend(1))
    count = np.stack([np.bincount(lists[:, k], minlength=10) for k in range(5)])
    assert (stats.chisquare(count, axis=1).pvalue > 1e-4).all()
