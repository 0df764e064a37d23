"""Lazy selection must never change a list."""

import numpy as np
import pytest

from logeval.policies import pairs
from logeval.policies.registry import POLICIES
from logeval.policies.shared import topk
from logeval.policies.shared.bounds import BUDGETS, KL, UCB1, kl_budget
from logeval.policies.shared.topk import BLOCK
from logeval.tracks.lists import b_lb
from logeval.tracks.ranking import RankingEnvironment
from tests.policies.running import RANKING, by_bound, lists_of, make, one_replica
from tests.stand_in import large_dcm

INDEX = [
    "CascadeUCB1",
    "CascadeKL-UCB",
    "CascadeKL-UCB(order=ascending)",
    "dcmKL-UCB",
    "dcmKL-UCB(init=sample)",
    "First-Click",
    "Last-Click",
    "RankedUCB1",
    "RankedKL-UCB",
    "RankedKL-UCB(init=sample)",
    "RankedKL-UCB(collision=random)",
]


def expected(policy, t, r, L, A):
    """The list (of a ranked bandit: the choice of each position) by solving all bounds."""
    b = BUDGETS[policy.KIND](t)
    if "Ranked" not in policy.NAME:
        arms = policy.memory.arms
        return by_bound(policy.KIND, arms.S[r, :L], arms.T[r, :L], b)[: len(A)].tolist()
    best = policy.given.collision == "best"
    bandits = zip(policy.memory.bandits.S[r], policy.memory.bandits.T[r], strict=True)
    orders = [by_bound(policy.KIND, S[:L], T[:L], b) for S, T in bandits]
    return [next(e for e in order if not best or e not in A[:k]) for k, order in enumerate(orders)]


def check_lists(name, problems, replicas, horizon):
    users = RankingEnvironment(problems, replicas, seed=5)
    policy, sizes = make(name, users, horizon), [problems[q].size for q, _ in replicas]
    for t in range(1, horizon + 1):
        A = policy.recommend(t)
        for r, L in enumerate(sizes):
            ranked = "Ranked" in name
            if ranked and policy.given.init == "rounds" and t <= L:
                continue
            shown = policy.memory.chosen[r] if ranked else A[r, policy.memory.order[r]]
            assert shown.tolist() == expected(policy, t, r, L, A[r].tolist()), f"step {t}"
        policy.update(t, A, users.step(A))


@pytest.mark.parametrize("name", INDEX)
def test_lists_are_those_of_all_bounds_over_whole_runs(name):
    problems = [large_dcm(L, 4, seed=L) for L in (5, 16, 130)]
    horizon = 600 if "Ranked" in name else 3000
    check_lists(name, problems, [(0, 0), (1, 0), (2, 0), (2, 1)], horizon)


@pytest.mark.parametrize("name", ["dcmKL-UCB", "RankedKL-UCB"])
def test_lists_are_those_of_all_bounds_when_many_items_are_equal(name):
    check_lists(name, [b_lb(L=200, K=5, p=0.2, gap=0.0)], [(0, 0)], 1000)


OF_A_DCM = [name for name in RANKING if {*getattr(POLICIES[name], "NEEDS", ())} <= {"free_samples"}]


@pytest.mark.parametrize("name", OF_A_DCM)
def test_lists_hold_different_items_of_the_replica(name):
    problems = [large_dcm(L, 4, seed=L) for L in (4, 9, 40)]
    lists, _ = lists_of(name, problems, [(0, 0), (1, 0), (2, 0)], 200)
    for r, L in enumerate((4, 9, 40)):
        assert ((lists[:, r] >= 0) & (lists[:, r] < L)).all()
        assert all(len(set(A)) == 4 for A in lists[:, r].tolist())


def test_ties_are_broken_at_random():
    """By label, and labels are random."""
    problem = b_lb(L=40, K=4, p=0.0, gap=0.0)
    replicas = [(0, run) for run in range(60)]
    lists, _ = lists_of("dcmKL-UCB", [problem], replicas, 1)
    assert (lists == np.arange(4)).all()
    items = RankingEnvironment([problem], replicas, seed=5).items(lists[0])
    counts = np.bincount(items.ravel(), minlength=40)
    assert counts.max() <= 20  # 6 expected each; by index the first four would have 60
    assert (counts[4:] > 0).sum() > 30


STEPS = 250


def worlds(L):
    """A generator, and sums and numbers of observations with many ties, of L arms."""
    rng = np.random.default_rng(L)
    T = rng.integers(1, 3, L).astype(float)
    return rng, np.floor(rng.random(L) * (T + 1)), T


@pytest.mark.parametrize("kind", [KL, UCB1])
@pytest.mark.parametrize(("L", "m"), [(3, 3), (9, 1), (2 * BLOCK + 2, 4)])
def test_the_list_is_that_of_sorting_all_bounds(kind, L, m):
    arms, taken = one_replica(topk.Bandit(), L, m), np.zeros(L, dtype=np.bool_)
    rng, arms.S[:], arms.T[:] = worlds(L)
    for t in range(2, STEPS):
        b = kl_budget(t)
        taken[:] = False
        taken[rng.permutation(L)[: rng.integers(0, L - m + 1) if t % 3 == 0 else 0]] = True
        topk.select(kind, b, taken, arms)
        expected = [e for e in by_bound(kind, arms.S, arms.T, b) if not taken[e]][:m]
        assert arms.held.tolist() == expected, f"step {t}"
        for e in {*rng.choice(arms.held, 2), rng.integers(L)}:  # also one that was not shown
            arms.T[e] += 1
            arms.S[e] += rng.random() < 0.9 * e / L
            topk.touch(e, arms)


@pytest.mark.parametrize("kind", [KL, UCB1])
@pytest.mark.parametrize("L", [1, BLOCK, 3 * BLOCK + 2])
@pytest.mark.parametrize("ahead", [0.01, 4.0])  # keys far ahead are in another order than bounds
def test_the_arm_is_the_first_of_sorting_all_bounds(kind, L, ahead):
    arms = one_replica(pairs.KeyedArms(), L)
    rng, arms.S[:], arms.T[:] = worlds(L)
    arms.state[:] = pairs.BEGIN
    arms.state[pairs.AHEAD] = ahead
    for t in range(2, STEPS):
        b = kl_budget(t)
        found = pairs.select_first(kind, b, arms)
        assert found == by_bound(kind, arms.S, arms.T, b)[0], f"step {t}"
        for e in (found, rng.integers(L)):
            arms.T[e] += 1
            arms.S[e] += rng.random() < 0.9 * e / L
            pairs.touch_first(kind, e, arms)
