"""Pairs and blocks of TopRank and UniRank."""

import numpy as np
import pytest

from logeval.policies.shared import blocks as kernel
from tests.policies.running import SETTING_A, make, steps, users_of


@pytest.mark.parametrize("name", ["TopRank", "UniRank", "UniRank(optimism=loglog)"])
def test_pairs_and_blocks_stay_in_order(name):
    users = users_of(SETTING_A, runs=3)
    policy = make(name, users, 3000)
    for _ in steps(policy, users, 3000):
        pass
    S, N = policy._pairs
    assert (np.abs(S) <= N).all()
    assert (S == -S.transpose(0, 2, 1)).all()
    assert (N == N.transpose(0, 2, 1)).all()
    assert N.max() > 20
    assert (np.sort(policy._blocks.items, axis=1) == np.arange(10)).all()
    assert (policy._blocks.beaten == policy._blocks.beats.sum(axis=1)).all()


def test_a_circle_of_relations_is_one_block():
    blocks = kernel.one_block(1, np.array([4]))
    mine = kernel.blocks_of.py_func(0, 4, blocks)
    for i, j in [(0, 1), (0, 2), (0, 3), (1, 2), (2, 3), (3, 1)]:
        kernel.relate(i, j, True, mine)
    kernel.peel(mine)
    assert mine.level.tolist() == [0, 1, 1, 1]
