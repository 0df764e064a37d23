"""BubbleRank: numbers worked out by hand, safety, and what is refused."""

import math

import numpy as np
import pytest

from logeval.errors import LogevalError
from logeval.policies import bubblerank
from logeval.tracks.registry import synthetic_problem
from tests.policies.running import W, make, steps, users_of

SQUARE = synthetic_problem(
    f"PBM(w={W},e=1/0.9/0.8/0.7/0.6/0.5/0.4/0.3/0.2/0.1,base=2>1>4>3>6>5>8>7>10>9)"
)


def test_bubblerank_needs_185_one_sided_clicks():
    assert not bubblerank.is_sure(184.0, 184.0, 4 * math.log(1e5))
    assert bubblerank.is_sure(185.0, 185.0, 4 * math.log(1e5))


def inversions(A, best):
    rank = np.argsort(best)[A]
    return sum((rank[i] > rank[i + 1 :]).sum() for i in range(len(A)))


def test_bubblerank_is_safe():
    users = users_of(SQUARE, runs=4)
    policy = make("BubbleRank", users, 3000)
    start = inversions(users.offers["base_list"][0], users.best[0])
    assert start == 5
    for _, lists, _ in steps(policy, users, 3000):
        assert max(map(inversions, lists, users.best)) <= start + 5


def test_bubblerank_refuses_more_items_than_positions():
    problem = synthetic_problem("PBM(w=0.5/0.4/0.3,e=1/0.5,base=3>1)")
    with pytest.raises(LogevalError, match="items=base"):
        make("BubbleRank", users_of(problem), 10)
    users = users_of(problem, runs=20)
    policy = make("BubbleRank(items=base)", users, 100)
    shown = {
        int(i)
        for _, lists, _ in steps(policy, users, 100)
        for i in users.labels.items(lists).ravel()
    }
    assert shown == {0, 2}


def test_the_base_list_is_refused_where_there_is_none():
    with pytest.raises(LogevalError, match="base_list"):
        make("BubbleRank", users_of(synthetic_problem("DCM(w=0.5/0.4,v=0.5/0.5)")), 10)
