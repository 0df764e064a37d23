"""Policies on all pairs: lazy selection never changes a pair; TS is exact in distribution."""

import numpy as np
import pytest
from scipy import special, stats

from logeval.policies import pairs
from logeval.policies.shared.kernel_policy import plain, view_of
from logeval.running.kernels import njit_views
from logeval.tracks.rank1 import Rank1Environment, Rank1Problem, needle
from tests.policies.running import by_bound, make


def with_posteriors(S, T, runs):
    """A TS of ``runs`` replicas with the given clicks and observations of its pairs."""
    problem = Rank1Problem("PBM", "1", np.full(len(S), 0.5), np.ones(1))
    environment = Rank1Environment([problem], [(0, run) for run in range(runs)], 0)
    policy = make("TS", environment, 1000)
    policy.memory.S[:], policy.memory.T[:] = S, T
    return policy


def of_replica(policy, r):
    return view.py_func(r, policy.memory.S.shape[1], plain(policy.memory))


view = view_of(pairs.Posteriors())


@njit_views
def set_ladders(levels, shape, memory):
    for r in range(shape[0]):
        for g in range(len(pairs.TARGETS)):
            pairs.fill(g, levels**g, view(r, shape[1], memory))


def chance_of_being_largest(S, T):
    """P(theta_i is the largest) = integral of prod_{j != i} F_j dF_i, as a Riemann sum."""
    x = np.linspace(0, 1, 200_001)
    F = special.betainc(1.0 + np.array(S)[:, None], 1.0 + np.subtract(T, S)[:, None], x)
    middle = 0.5 * (F[:, 1:] + F[:, :-1])
    return [(np.diff(F[i]) * np.delete(middle, i, axis=0).prod(axis=0)).sum()
            for i in range(len(S))]  # fmt: skip


@pytest.mark.parametrize(
    ("S", "T"),
    [
        ([0, 0, 0], [0, 0, 0]),
        ([0, 1, 1, 5, 30], [0, 1, 3, 20, 100]),
        ([600, 55, 5, 0, 0, 1], [1000, 100, 10, 3, 9, 1]),
        ([9, 0], [9, 1]),
    ],
)
@pytest.mark.parametrize("levels", [None, 0.999, 0.3])
def test_pairs_are_shown_as_often_as_they_are_largest(S, T, levels):
    """With levels that fit, and with ladders that are far too high, or too low, for them."""
    runs, steps = 20, 1000
    policy = with_posteriors(S, T, runs)
    counts = np.zeros(len(S))
    for t in range(1, steps + 1):
        if levels is not None:
            set_ladders(levels, policy.memory.S.shape, plain(policy.memory))
            policy.memory.work[:] = 0
        counts += np.bincount(policy.recommend(t)[:, 0], minlength=len(S))
    expected = np.array(chance_of_being_largest(S, T)) * runs * steps
    seen = expected > 5
    assert counts[~seen].sum() <= 25
    statistic = ((counts - expected)[seen] ** 2 / expected[seen]).sum()
    assert stats.chi2.sf(statistic, seen.sum() - 1) > 1e-4


def test_regret_is_distributed_as_that_of_drawing_every_theta():
    problem, horizon, runs = needle(5, 4, 0.25, 0.5), 400, 150
    environment = Rank1Environment([problem], [(0, run) for run in range(runs)], 0)
    policy = make("TS", environment, horizon)
    regret = np.zeros(runs)
    for t in range(1, horizon + 1):
        A = policy.recommend(t)
        regret += environment.regret(A)
        policy.update(t, A, environment.step(A))
    rng = np.random.default_rng(0)
    p = np.outer(problem.u_bar, problem.v_bar).ravel()
    S, T, naive = np.zeros((runs, 20)), np.zeros((runs, 20)), np.zeros(runs)
    for _ in range(horizon):
        i = rng.beta(1 + S, 1 + T - S).argmax(axis=1)
        naive += p.max() - p[i]
        S[np.arange(runs), i] += rng.random(runs) < p[i]
        T[np.arange(runs), i] += 1
    assert stats.ks_2samp(regret, naive).pvalue > 1e-3


def test_hazards_follow_the_posteriors_and_levels_are_set_anew():
    problem, horizon = needle(9, 8, 0.25, 0.5), 3000
    environment = Rank1Environment([problem], [(0, 0), (0, 1)], 0)
    policy = make("TS", environment, horizon)
    ladders = set()
    for t in range(1, horizon + 1):
        A = policy.recommend(t)
        ladders.add(policy.memory.levels[0, 1])
        policy.update(t, A, environment.step(A))
    assert 2 < len(ladders) < 300
    for r in range(2):
        S, T, h, block_h, x = of_replica(policy, r)[:5]
        exact = special.betainc(1 + S[:, None], 1 + (T - S)[:, None], x)
        assert np.exp(-h) == pytest.approx(exact, abs=1e-12)
        assert block_h.sum(axis=0) == pytest.approx(h.sum(axis=0))


@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 500), (700, 1), (3, 90), (2e5, 1e6)])
def test_survival_against_scipy(a, b):
    spread = np.sqrt(a * b / (a + b) ** 3)
    for x in np.clip(a / (a + b) + spread * np.linspace(-6, 9, 16), 1e-9, 1 - 1e-9):
        F, Q = pairs.survival(float(a), float(b), x)
        assert pytest.approx(special.betainc(a, b, x), rel=1e-7, abs=1e-13) == F
        assert pytest.approx(special.betaincc(a, b, x), rel=1e-7, abs=1e-13) == Q


def test_a_run_does_not_depend_on_the_other_replicas():
    problem = needle(6, 5, 0.25, 0.5)
    alone = Rank1Environment([problem], [(0, 1)], 0)
    both = Rank1Environment([problem], [(0, 1), (0, 0)], 0)
    policies = [make("TS", alone, 500), make("TS", both, 500)]
    for t in range(1, 501):
        A, B = (p.recommend(t) for p in policies)
        assert A[0].tolist() == B[0].tolist()
        policies[0].update(t, A, alone.step(A))
        policies[1].update(t, B, both.step(B))


@pytest.mark.parametrize("name", ["UCB1", "KL-UCB"])
@pytest.mark.parametrize(
    "problem",
    [
        needle(20, 9, 0.25, 0.5),
        needle(40, 40, 0.0, 1.0),
        Rank1Problem("PBM", "1", np.linspace(0, 1, 70), np.array([1.0, 0.3, 0.0])),
    ],
)
def test_pairs_are_those_of_all_bounds(name, problem):
    users = Rank1Environment([problem], [(0, 0), (0, 1)], 0)
    policy, K = make(name, users, 3000), len(problem.v_bar)
    for t in range(1, 3001):
        A = policy.recommend(t)
        _, b, kind, _ = policy.now(t)
        for r, (S, T) in enumerate(zip(policy.memory.S, policy.memory.T, strict=True)):
            arm = by_bound(kind, S, T, b)[0] if t > len(S) else t - 1
            assert A[r, 0] * K + A[r, 1] == arm, f"step {t}"
        policy.update(t, A, users.step(A))
