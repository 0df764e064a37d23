"""Pairs and blocks of TopRank and UniRank."""

import numpy as np
import pytest

from logeval.policies.shared.blocks import Blocks, peel, relate
from tests.policies.running import SETTING_A, make, one_replica, steps, users_of


@pytest.mark.parametrize("name", ["TopRank", "UniRank", "UniRank(optimism=loglog)"])
def test_pairs_and_blocks_stay_in_order(name):
    users = users_of(SETTING_A, runs=3)
    policy = make(name, users, 3000)
    for _ in steps(policy, users, 3000):
        pass
    S, N = policy.memory.pairs
    blocks = policy.memory.blocks
    assert (np.abs(S) <= N).all()
    assert (S == -S.transpose(0, 2, 1)).all()
    assert (N == N.transpose(0, 2, 1)).all()
    assert N.max() > 20
    assert (np.sort(blocks.items, axis=1) == np.arange(10)).all()
    assert (blocks.beaten == blocks.beats.sum(axis=1)).all()


def test_a_circle_of_relations_is_one_block():
    mine = one_replica(Blocks(), 4)
    for i, j in [(0, 1), (0, 2), (0, 3), (1, 2), (2, 3), (3, 1)]:
        relate(i, j, True, mine)
    peel(mine)
    assert mine.level.tolist() == [0, 1, 1, 1]
