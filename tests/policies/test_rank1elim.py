"""Elimination: the maps h, the stages; all policies on easy and degenerate problems."""

import math

import numpy as np
import pytest

from logeval.policies.pairs import N_LEFT
from logeval.policies.rank1elim import STAGE, divergence, eliminate, stage_length
from logeval.policies.shared.bounds import KL, UCB1, kl_lower, kl_upper
from logeval.tracks.rank1 import Rank1Environment, Rank1Problem, needle
from tests.policies.running import make

ELIMINATION = ["Rank1ElimKL", "Rank1Elim"]
ALL = [*ELIMINATION, "UCB1Elim", "UCB1", "KL-UCB", "TS"]


def play(name, problem, horizon, runs=1, seed=0):
    environment = Rank1Environment([problem], [(0, run) for run in range(runs)], seed)
    policy = make(name, environment, horizon)
    pairs, regret = [], np.zeros(runs)
    for t in range(1, horizon + 1):
        A = policy.recommend(t)
        pairs.append(A.copy())
        regret += environment.regret(A)
        policy.update(t, A, environment.step(A))
    return policy, np.array(pairs), regret, environment


def slow_elimination(kind, C, n_l, log_n, groups):
    """Sets of rows instead of a map: ``groups`` sends a remaining row to all it stands for."""
    delta = (log_n + 3 * math.log(log_n)) / n_l
    radius = math.sqrt(log_n / n_l)
    mean = {i: C[i] / n_l for i in groups}
    low = {i: kl_lower(m, delta) if kind == KL else m - radius for i, m in mean.items()}
    high = {i: kl_upper(m, delta) if kind == KL else m + radius for i, m in mean.items()}
    winner = max(sorted(groups), key=lambda i: low[i])
    after = {}
    for i, members in groups.items():
        target = winner if high[i] <= low[winner] else i
        after[target] = after.get(target, set()) | members
    return after


@pytest.mark.parametrize("kind", [KL, UCB1])
def test_the_maps_agree_with_sets_over_stages(kind):
    rng = np.random.default_rng(1)
    log_n, before = math.log(100_000), 3  # lines of the other kind, which stay as they are
    for _ in range(50):
        L = int(rng.integers(1, 12))
        mean = rng.random(L)
        h = np.arange(before + L)
        groups = {i: {i} for i in range(L)}
        for stage in range(4):
            n_l = stage_length(kind, stage, log_n)
            C = np.floor(mean * n_l)
            lines, delta = np.append(np.zeros(before), C), divergence(False, 1, log_n)
            eliminate(kind, False, lines, h, before, before + L, n_l, delta, log_n)
            groups = slow_elimination(kind, C, n_l, log_n, groups)
            mine = h[before:] - before
            assert np.flatnonzero(mine == np.arange(L)).tolist() == sorted(groups)
            assert {i: set(np.flatnonzero(mine == i).tolist()) for i in groups} == groups
            assert h[:before].tolist() == list(range(before))


def test_stages_quadruple():
    log_n = math.log(2_000_000)
    assert stage_length(KL, 0, log_n) == math.ceil(16 * log_n)
    assert stage_length(KL, 2, log_n) == math.ceil(256 * log_n)
    assert stage_length(UCB1, 1, log_n) == math.ceil(16 * log_n)


def test_a_round_shows_all_rows_with_one_column_and_all_columns_with_one_row():
    _, pairs, _, _ = play("Rank1ElimKL", needle(5, 3, 0.2, 0.5), 16)
    first, second = pairs[:5, 0], pairs[5:8, 0]
    assert first[:, 0].tolist() == list(range(5))
    assert len(set(first[:, 1])) == 1
    assert second[:, 1].tolist() == list(range(3))
    assert len(set(second[:, 0])) == 1
    assert pairs[8:13, 0, 0].tolist() == list(range(5))


@pytest.mark.parametrize("name", ELIMINATION)
def test_the_best_pair_survives_on_easy_problems(name):
    horizon, runs = 30_000, 40
    policy, pairs, _, environment = play(name, needle(6, 4, 0.1, 0.8), horizon, runs)
    assert (pairs[-1] == environment.best).all()
    assert (policy.remaining() == 1).all()


@pytest.mark.parametrize("name", [*ELIMINATION, "UCB1Elim"])
def test_the_best_pair_is_hardly_ever_eliminated(name):
    """Each bound fails with probability O(1 / n), so 100 runs should lose no best pair."""
    problem = Rank1Problem("PBM", "1", np.array([0.9, 0.7, 0.2]), np.array([0.8, 1.0]))
    horizon, runs = 20_000, 100
    policy, _, _, environment = play(name, problem, horizon, runs)
    assert (policy.remaining() <= [3, 2]).all()
    assert policy.remaining().sum() < 5 * runs  # something was eliminated
    for r, (row, column) in enumerate(environment.best):
        if name == "UCB1Elim":
            assert row * 2 + column in policy.memory.left[r, : policy.memory.state[r, N_LEFT]]
        else:
            h = policy.memory.h[r]
            assert h[row] == row
            assert h[3 + column] == 3 + column


@pytest.mark.parametrize("name", ALL)
def test_regret_is_counted_when_the_horizon_ends_inside_a_stage(name):
    problem = needle(4, 3, 0.25, 0.5)
    _, pairs, regret, environment = play(name, problem, 101, runs=3)
    shown = np.array([environment.items(A) for A in pairs])
    p = problem.u_bar[shown[:, :, 0]] * problem.v_bar[shown[:, :, 1]]
    assert regret == pytest.approx((0.75 * 0.75 - p).sum(axis=0))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    ("u_bar", "v_bar"),
    [
        ([0.5], [0.5]),
        ([0.5], [0.1, 0.9, 0.5]),
        ([0.1, 0.9], [0.5]),
        ([0.3, 0.3, 0.3], [0.7, 0.7]),
        ([0.0, 0.0], [0.0, 0.0]),
        ([1.0, 1.0], [1.0, 1.0]),
        ([0.0, 1.0], [1.0, 0.0]),
    ],
)
def test_degenerate_problems(name, u_bar, v_bar):
    problem = Rank1Problem("PBM", "1", np.array(u_bar), np.array(v_bar))
    _, pairs, regret, _ = play(name, problem, 1000, runs=2)
    assert (pairs >= 0).all()
    assert (pairs < [len(u_bar), len(v_bar)]).all()
    assert np.isfinite(regret).all()
    assert (regret >= 0).all()
    if len(set(u_bar)) == len(set(v_bar)) == 1:
        assert regret == pytest.approx(0.0, abs=1e-9)


def test_ucb1elim_shows_every_pair_equally_often_in_a_stage():
    problem, horizon = needle(4, 3, 0.25, 0.5), 5000
    _, pairs, _, _ = play("UCB1Elim", problem, horizon)
    first = math.ceil(2 * math.log(horizon))
    counts = np.bincount(pairs[: 12 * first, 0, 0] * 3 + pairs[: 12 * first, 0, 1])
    assert (counts == first).all()


def test_stage_counters_move():
    policy, _, _, _ = play("Rank1Elim", needle(3, 3, 0.25, 0.5), 5000)
    assert policy.memory.state[0, STAGE] >= 1
