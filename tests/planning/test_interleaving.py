"""Interleavings against the papers' examples, and against all that can happen in tiny cases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from logeval.planning.power import Probabilistic, TeamDraft, softmax

RNG = np.random.default_rng(0)


def test_team_draft_has_the_lists_of_the_papers_example():
    # Radlinski, Kurup and Joachims (2008): rankings a b c d g h and b e a f g h; coins AAA give
    # a b c e d f with teams A B A B A B, coins BAA give b a c e d f, coins ABA a b e c d f
    a, b, c, d, e, f, g, h = range(8)
    found = TeamDraft().lists(np.array([a, b, c, d, g, h]), np.array([b, e, a, f, g, h]), RNG, 1)
    lists = {tuple(A): tuple(credit) for A, credit in zip(found.A, found.credit, strict=True)}
    assert lists[a, b, c, e, d, f] == (-1, 1, -1, 1, -1, 1)
    assert lists[b, a, c, e, d, f] == (1, -1, -1, 1, -1, 1)
    assert lists[a, b, e, c, d, f] == (-1, 1, 1, -1, -1, 1)
    assert found.p.sum() == pytest.approx(1.0)
    assert len(found.p) == 8
    assert np.allclose(found.p, 1 / 8)


def draft(a, b, coins):
    """The rule as the paper has it, one coin for each time that the teams are of equal size."""
    shown, team_a, team_b, coins = [], [], [], iter(coins)
    while len(shown) < len(a):
        a_first = len(team_a) < len(team_b) or (len(team_a) == len(team_b) and next(coins))
        team, ranking = (team_a, a) if a_first else (team_b, b)
        item = next(i for i in ranking if i not in shown)
        shown.append(item)
        team.append(item)
    return tuple(shown), tuple(1 if i in team_b else -1 for i in shown)


@pytest.mark.parametrize("K", [1, 2, 3, 5])
def test_team_draft_is_the_rule_over_all_coins(K):
    rng = np.random.default_rng(K)
    a, b = rng.permutation(7)[:K], rng.permutation(7)[:K]
    n = (K + 1) // 2
    wanted = {}
    for coins in itertools.product([True, False], repeat=n):
        key = draft(a.tolist(), b.tolist(), coins)
        wanted[key] = wanted.get(key, 0.0) + 0.5**n
    found = TeamDraft().lists(a, b, rng, 1)
    rows = zip(found.A.tolist(), found.credit.astype(int).tolist(), found.p, strict=True)
    assert {(tuple(A), tuple(s)): p for A, s, p in rows} == pytest.approx(wanted)


def test_team_draft_credits_nobody_where_both_rankers_are_the_same():
    same = np.array([3, 1, 2, 0])
    found = TeamDraft().lists(same, same, RNG, 1)
    assert (found.A == same).all()
    assert np.allclose(found.p @ found.credit, 0.0)


def test_the_softmax_is_that_of_the_paper():
    # Hofmann et al. (2011), section 3: tau = 3, four documents: 0.85, 0.10, 0.03, 0.01
    p = softmax(np.array([7, 8, 9, 10]), np.array([7, 8, 9, 10]))
    assert np.round(p, 2).tolist() == [0.85, 0.11, 0.03, 0.01]
    missing = softmax(np.array([7, 8, 9]), np.array([9, 7]))  # 8 comes last
    assert missing.argsort().tolist() == [1, 0, 2]


def enumerate_probabilistic(a, b):
    """All sequences of coins and items: probability of each list, and of each (list, coins)."""
    items = list(dict.fromkeys([*a, *b]))
    soft = [dict(zip(items, softmax(np.array(items), np.array(r)), strict=True)) for r in (a, b)]
    joint = {}
    for shown in itertools.permutations(items, len(a)):
        for coins in itertools.product([0, 1], repeat=len(a)):
            p, left = 1.0, list(items)
            for item, coin in zip(shown, coins, strict=True):
                p *= 0.5 * soft[coin][item] / sum(soft[coin][i] for i in left)
                left.remove(item)
            joint[shown, coins] = p
    return joint


def test_probabilistic_interleaving_averages_over_all_assignments():
    a, b = [1, 2, 3], [2, 4, 1]
    joint = enumerate_probabilistic(a, b)
    assert sum(joint.values()) == pytest.approx(1.0)
    by_list, credit = {}, {}
    for (shown, coins), p in joint.items():
        by_list[shown] = by_list.get(shown, 0.0) + p
        signs = np.array([1 if coin else -1 for coin in coins])
        credit[shown] = credit.get(shown, 0.0) + p * signs
    n = 40_000
    found = Probabilistic().lists(np.array(a), np.array(b), np.random.default_rng(1), n)
    for shown, p in by_list.items():
        rows = (found.A == shown).all(axis=1)
        assert rows.mean() == pytest.approx(p, abs=4 * np.sqrt(p / n) + 1e-4)
        if rows.any():
            assert np.allclose(found.credit[rows], credit[shown] / p)
    assert found.p.sum() == pytest.approx(1.0)
    assert all(len(set(A)) == 3 for A in found.A[:100].tolist())
