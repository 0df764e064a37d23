"""Lazy selection must never change a list."""

import inspect

import numpy as np
import pytest

from logeval.policies.registry import POLICIES
from logeval.tracks.ranking.environment import RankingEnvironment
from logeval.tracks.ranking.problems import b_lb
from tests.policies.running import RANKING, lists_of
from tests.stand_in import large_dcm

INDEX = [
    name for name in RANKING if "lazy" in inspect.signature(POLICIES[name].__init__).parameters
]
VARIANTS = [
    *INDEX,
    "CascadeKL-UCB(order=ascending)",
    "dcmKL-UCB(init=rounds)",
    "RankedKL-UCB(init=rounds)",
    "RankedKL-UCB(collision=random)",
]


@pytest.mark.parametrize("name", VARIANTS)
def test_lazy_and_eager_lists_are_identical_over_whole_runs(name):
    problems = [large_dcm(L, 4, seed=L) for L in (5, 16, 130)]
    replicas = [(0, 0), (1, 0), (2, 0), (2, 1)]
    horizon = 600 if "Ranked" in name else 3000
    lazy, _ = lists_of(name, problems, replicas, horizon, lazy=True)
    eager, _ = lists_of(name, problems, replicas, horizon, lazy=False)
    assert (lazy == eager).all()


def test_lazy_and_eager_lists_are_identical_when_many_items_are_equal():
    problem = b_lb(L=200, K=5, p=0.2, gap=0.0)
    for name in ("dcmKL-UCB", "RankedKL-UCB"):
        lazy, _ = lists_of(name, [problem], [(0, 0)], 1000, lazy=True)
        eager, _ = lists_of(name, [problem], [(0, 0)], 1000, lazy=False)
        assert (lazy == eager).all()


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
