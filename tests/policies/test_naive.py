"""Each policy recommends the same lists as a plain NumPy version written independently."""

import itertools

import numpy as np
import pytest

from benchmarks import naive
from logeval import seeds
from logeval.policies.ranking.exp3 import auer_gamma
from logeval.tracks.ranking import RankingEnvironment
from logeval.uniforms import Uniforms
from tests.policies.running import lists_of, setting_of
from tests.stand_in import large_dcm

PROBLEMS = [large_dcm(L, 3, seed=L) for L in (3, 12, 70)]
REPLICAS = [(0, 0), (1, 0), (1, 1), (2, 0)]
HORIZON = 500

CASCADES = {
    "CascadeUCB1": {"feedback": "first", "ucb": naive.ucb1, "budget": naive.ucb1_budget},
    "CascadeKL-UCB": {"feedback": "first"},
    "CascadeKL-UCB(order=ascending)": {"feedback": "first", "ascending": True},
    "dcmKL-UCB": {"feedback": "all"},
    "First-Click": {"feedback": "first"},
    "Last-Click": {"feedback": "last"},
}
RANKED = {
    "RankedUCB1": {"ucb": naive.ucb1, "budget": naive.ucb1_budget},
    "RankedKL-UCB": {},
    "RankedKL-UCB(collision=random)": {"collision": "random"},
}


def environment_and_labels():
    environment = RankingEnvironment(PROBLEMS, REPLICAS, seed=5)
    _, label = setting_of(environment, HORIZON).random_labels()
    start = np.concatenate([[0], np.cumsum(environment.L)])
    return environment, [label[a:z] for a, z in itertools.pairwise(start)]


@pytest.mark.parametrize("name", CASCADES)
def test_cascade_policies(name):
    lists, clicks = lists_of(name, PROBLEMS, REPLICAS, HORIZON)
    environment, labels = environment_and_labels()
    for r in environment.rows:
        policy = naive.Cascade(3, environment.free_samples(r, 1)[0], labels[r], **CASCADES[name])
        for t in range(1, HORIZON + 1):
            A = policy.recommend(t, iterations=60)
            assert A.tolist() == lists[t - 1, r].tolist()
            policy.update(A, clicks[t - 1, r])


@pytest.mark.parametrize("name", RANKED)
def test_ranked_bandits(name):
    lists, clicks = lists_of(name, PROBLEMS, REPLICAS, HORIZON)
    environment, labels = environment_and_labels()
    for r in environment.rows:
        generator = seeds.generator(0, "test", r)
        generator.permutation(environment.L[r])
        uniforms = Uniforms([generator], 3)
        policy = naive.Ranked(3, environment.free_samples(r, 3), labels[r], **RANKED[name])
        for t in range(1, HORIZON + 1):
            A = policy.recommend(t, uniforms.at(t)[0], iterations=60)
            assert A.tolist() == lists[t - 1, r].tolist()
            policy.update(A, clicks[t - 1, r])


@pytest.mark.parametrize("collision", ["best", "random"])
@pytest.mark.parametrize("gamma", [None, 0.9])
def test_ranked_exp3(collision, gamma):
    name = f"RankedExp3(collision={collision}{'' if gamma is None else f',gamma={gamma}'})"
    lists, clicks = lists_of(name, PROBLEMS, REPLICAS, HORIZON)
    environment = RankingEnvironment(PROBLEMS, REPLICAS, seed=5)
    for r in environment.rows:
        L = int(environment.L[r])
        uniforms = Uniforms([seeds.generator(0, "test", r)], 3 if collision == "best" else 6)
        share = gamma or auer_gamma(np.array([L]), HORIZON)[0]
        policy = naive.RankedExp3(3, L, share, collision)
        for t in range(1, HORIZON + 1):
            A = policy.recommend(t, uniforms.at(t)[0])
            assert A.tolist() == lists[t - 1, r].tolist()
            policy.update(A, clicks[t - 1, r])


def test_auer_gamma_worked_out_by_hand():
    assert auer_gamma(np.array([10]), 1000)[0] == pytest.approx(
        (10 * np.log(10) / ((np.e - 1) * 1000)) ** 0.5
    )
    assert auer_gamma(np.array([1000]), 1)[0] == 1.0


def test_exp3_weights_stay_finite_when_one_item_is_always_clicked():
    from logeval.policies.ranking.exp3 import reweigh

    W, blocks, total = np.ones(3), np.array([3.0]), 3.0
    for _ in range(5000):
        total = reweigh(0, 0.5, W, blocks, total)
    assert np.isfinite(W).all()
    assert np.isfinite(total)
    assert W[0] / total > 0.999999
