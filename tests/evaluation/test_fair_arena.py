"""Nobody gains from the order in which items are stored: the first labels are random items."""

import itertools
from functools import partial

import numpy as np
import pytest

from logeval.evaluation.evaluate import evaluate
from logeval.tracks.contextual import ContextualEnvironment, ContextualProblem, in_turn
from logeval.tracks.worlds import GroundSet
from tests.stand_in import models

RUNS, STEPS = 400, 30
SYNTHETIC = [
    "B_LB(L=16,K=4,p=0.2,gap=0.15,gamma=0.5)",
    "rank1(K=9,L=7,p=0.25,gap=0.5)",
    "contextual(L=12,K=3,d=5,norm=2,contexts=fixed)",
]


class First:
    """Always the first labels: the optimum of a synthetic problem, if labels were its items."""

    def __init__(self, setting):
        self.A = np.tile(np.arange(setting.K), (setting.R, 1))

    def recommend(self, t):
        return self.A

    def update(self, t, A, clicks):
        pass


class FirstPair(First):
    TRACK = "rank1"

    def __init__(self, setting):
        self.A = np.zeros((setting.R, 2), dtype=int)


class FirstInTurn(First):
    TRACK = "contextual"


def check(policy, **problem):
    """Of each query, the mean regret is that of Random, within four standard errors."""
    found = evaluate(
        **problem, policies=[policy, "Random"], horizon=STEPS, runs=RUNS, checkpoints=[STEPS],
        quiet=True,
    ).to_pandas()  # fmt: skip
    for _, rows in found.groupby("query"):
        random = rows["policy"] == "Random"
        first, other = rows[~random]["regret"] / STEPS, rows[random]["regret"] / STEPS
        error = np.sqrt(first.var() / RUNS + other.var() / RUNS)
        assert abs(first.mean() - other.mean()) < 4.0 * error
        assert other.mean() > 10.0 * error  # a regret of 0 would be seen


@pytest.mark.parametrize("problem", SYNTHETIC)
def test_the_first_labels_of_a_synthetic_problem_have_the_regret_of_random(problem):
    kinds = {"B_LB": First, "rank1": FirstPair, "contextual": FirstInTurn}
    check(kinds[problem.partition("(")[0]], problem=problem)


@pytest.mark.parametrize("by", ["place", "row"])
def test_places_and_rows_of_the_contextual_track_say_nothing(by):
    """The list of the first places, or of the lowest rows of X, in worlds of many seeds.

    The items of the query stand best first.
    """
    L, K, n = 8, 3, 300
    query = GroundSet(np.linspace(0.8, 0.1, L), np.full(K, 0.5), np.eye(L), np.zeros((L, 0)))
    problem = ContextualProblem("DCM", "1", K, partial(in_turn, (query,), None, 10))
    first = []
    for seed in range(n):
        environment = ContextualEnvironment([problem], [(0, 0)], seed)
        row = environment.at(1).row
        A = np.arange(K)[None] if by == "place" else np.argsort(row, axis=1)[:, :K]
        first.append(environment.best_reward[0] - environment.reward(A)[0])
    everything = [environment.best_reward[0] - environment.reward(np.array([A]))[0]
                  for A in itertools.permutations(range(L), K)]  # fmt: skip
    error = np.std(everything) / np.sqrt(n)
    assert abs(np.mean(first) - np.mean(everything)) < 4.0 * error
    assert np.mean(everything) > 10.0 * error


@pytest.mark.parametrize("name", ["DCM", "PBM", "UBM"])
def test_the_first_labels_of_a_fitted_model_have_the_regret_of_random(name):
    check(First, models=models(name, (6, 8), K=3))
    if name == "PBM":
        check(FirstPair, models=models(name, (6, 8), K=3))
