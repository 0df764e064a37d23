"""TopRank and UniRank: pairs, blocks and leaders, and numbers worked out by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from logeval.policies import bounds
from logeval.policies.ranking import toprank, unirank
from tests.policies.running import SETTING_A, make, steps, users_of


def test_toprank_needs_29_one_sided_clicks():
    log_cn = math.log(toprank.C * 1e5)
    assert toprank.C == pytest.approx(3.3437, abs=5e-5)
    assert not toprank.is_below(28, 28, log_cn)
    assert toprank.is_below(29, 29, log_cn)


def test_budget_of_a_leader():
    assert unirank.leader_budget(100) == pytest.approx(math.log(100) + 3 * math.log(math.log(100)))
    assert bounds.kl_upper(0.5, unirank.leader_budget(100) / 100) == pytest.approx(
        0.704843, abs=1e-6
    )
    assert unirank.leader_budget(2) == math.inf  # the index is 1


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


def test_toprank_shows_every_item_everywhere_until_it_knows_better():
    users = users_of(SETTING_A, runs=200)
    policy = make("TopRank", users, 10**9)
    count = np.zeros((10, 5))
    for _, lists, _ in steps(policy, users, 40):
        for k in range(5):
            count[:, k] += np.bincount(lists[:, k], minlength=10)
    assert not policy._blocks.beats.any()
    assert stats.chisquare(count.ravel()).pvalue > 1e-4


def test_a_circle_of_relations_is_one_block():
    blocks = toprank.one_block(1, np.array([4]))
    mine = toprank.blocks_of.py_func(0, 4, blocks)
    for i, j in [(0, 1), (0, 2), (0, 3), (1, 2), (2, 3), (3, 1)]:
        toprank.relate(i, j, True, mine)
    toprank.peel(mine)
    assert mine.level.tolist() == [0, 1, 1, 1]


def test_unirank_plays_the_leader_or_a_neighbour():
    users = users_of(SETTING_A)
    policy = make("UniRank", users, 2000)
    for t, _, _ in steps(policy, users, 2000):
        blocks, now = policy._blocks, policy._now
        if t < 100:
            continue
        level = blocks.level[0]
        start = 0
        for end in now.end[0]:
            members = set(level[now.items[0, start:end]].tolist())
            assert len(members) <= 2 or start == 0
            start = end
            if end >= 5:
                break


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
