"""What the policies conclude from clicks, worked out by hand."""

import numpy as np
import pytest

from logeval.policies.cascade import ALL, FIRST, LAST, Memory, learn_one, positions
from logeval.policies.shared.bounds import KL
from logeval.tracks.lists import b_lb
from logeval.tracks.ranking import RankingEnvironment
from tests.policies.running import lists_of, make, one_replica, steps

CASES = [  # feedback, clicks, observed, counted
    (FIRST, [0, 1, 1, 0], [1, 1, 0, 0], [0, 1, 0, 0]),
    (ALL, [0, 1, 1, 0], [1, 1, 1, 0], [0, 1, 1, 0]),
    (LAST, [0, 1, 1, 0], [1, 1, 1, 0], [0, 0, 1, 0]),
    (FIRST, [0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]),
    (ALL, [0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]),
    (LAST, [0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]),
    (ALL, [1, 0, 0, 1], [1, 1, 1, 1], [1, 0, 0, 1]),
]


@pytest.mark.parametrize(("feedback", "clicks", "observed", "counted"), CASES)
def test_observations(feedback, clicks, observed, counted):
    mine = one_replica(Memory(), 4, 4)
    learn_one((0.0, KL, feedback), mine, np.arange(4), np.array(clicks, dtype=np.int8))
    assert mine.arms.T.tolist() == observed
    assert mine.arms.S.tolist() == counted


def test_orders():
    assert positions("descending", 3).tolist() == [0, 1, 2]
    assert positions("ascending", 3).tolist() == [2, 1, 0]
    assert positions("2>3>1", 3).tolist() == [1, 2, 0]


@pytest.mark.parametrize("name", ["dcmKL-UCB", "CascadeUCB1", "CascadeUCB-V", "Last-Click"])
def test_a_first_look_is_paid_for_in_lists_of_items_that_nobody_has_examined(name):
    """Where nobody clicks all K are examined, and 8 items take three lists of 3."""
    lists, _ = lists_of(name, [b_lb(8, 3, 0.0, 0.0)], [(0, 0)], 3)
    assert set(lists.ravel().tolist()) == set(range(8))
    users = RankingEnvironment([b_lb(8, 3, 0.9, 0.1, 0.5)], [(0, r) for r in range(20)], seed=5)
    policy = make(name, users, 40)
    for _, A, _ in steps(policy, users, 40):
        T = policy.memory.arms.T
        never = (T == 0).sum(axis=1)
        found = np.take_along_axis(T, A, axis=1) == 0
        assert (found.sum(axis=1) == np.minimum(never, 3)).all()  # as many as there is room for
        assert (found[:, 0] == (never > 0)).all()  # the first of them is examined by all
    assert (policy.memory.arms.T > 0).all()


def test_initial_rounds_of_ranked_bandits_show_every_item_at_every_position():
    lists, _ = lists_of("RankedKL-UCB", [b_lb(7, 3, 0.5, 0.2)], [(0, 0)], 7)
    for k in range(3):
        assert sorted(lists[:, 0, k].tolist()) == list(range(7))


def test_termination_order_moves_the_best_item():
    environment = RankingEnvironment([b_lb(5, 2, 0.5, 0.2)], [(0, 0)], seed=5)
    first = make("dcmKL-UCB", environment, 10).recommend(5).tolist()
    other = make("dcmKL-UCB(order=2>1)", environment, 10).recommend(5).tolist()
    assert first[0] == other[0][::-1]
