"""Blocks of TopRank and UniRank, and how often a leader has led."""

import math

import numpy as np
import pytest

from logeval.policies.shared import blocks, bounds
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


def test_budget_of_a_leader():
    assert blocks.leader_budget(100) == pytest.approx(math.log(100) + 3 * math.log(math.log(100)))
    assert bounds.kl_upper(0.5, blocks.leader_budget(100) / 100) == pytest.approx(
        0.704843, abs=1e-6
    )
    assert blocks.leader_budget(2) == math.inf  # the index is 1


def test_leaders_are_counted_as_in_a_dictionary_until_the_table_is_full():
    table = one_replica(blocks.Leaders(), 1)
    rng, counted = np.random.default_rng(0), {}
    for row in rng.integers(0, 4, (3000, 4)):
        blocks.lead(row, table)
        table.tau[table.now[0]] += 1
        counted[tuple(row)] = counted.get(tuple(row), 0) + 1
        assert table.tau[table.now[0]] == counted[tuple(row)]
    assert table.lost[0] == 0
    assert len(counted) == 256


def test_the_least_leader_is_forgotten():
    table = one_replica(blocks.Leaders(), 1)
    for i in range(200_000):
        blocks.lead(np.array([i, i]), table)
        table.tau[table.now[0]] += 1 + (i < 10)
    assert table.lost[0] == 200_000 - blocks.SETS * blocks.WAYS
    assert (table.tau > 1).sum() == 10
