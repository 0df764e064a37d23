"""Leaders of UniRank and GRAB: their rounds, and the budget that follows."""

import math

import numpy as np
import pytest

from logeval.policies.shared import blocks, bounds
from tests.policies.running import one_replica


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
