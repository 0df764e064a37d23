"""Nobody gains from the order in which items are stored: the first labels are random items."""

import numpy as np
import pytest

from logeval.evaluation import evaluate
from tests.stand_in import models

RUNS, STEPS = 400, 30
SYNTHETIC = [
    "B_LB(L=16,K=4,p=0.2,gap=0.15,gamma=0.5)",
    "rank1(K=9,L=7,p=0.25,gap=0.5)",
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


def check(policy, **problem):
    """Of each query, the mean regret is that of Random, within four standard errors."""
    found = evaluate(
        **problem, policies=[policy, "Random"], horizon=STEPS, runs=RUNS, checkpoints=[STEPS],
        quiet=True,
    ).table()  # fmt: skip
    for _, rows in found.groupby("query"):
        random = rows["policy"] == "Random"
        first, other = rows[~random]["regret"] / STEPS, rows[random]["regret"] / STEPS
        error = np.sqrt(first.var() / RUNS + other.var() / RUNS)
        assert abs(first.mean() - other.mean()) < 4.0 * error
        assert other.mean() > 10.0 * error  # a regret of 0 would be seen


@pytest.mark.parametrize("problem", SYNTHETIC)
def test_the_first_labels_of_a_synthetic_problem_have_the_regret_of_random(problem):
    check(FirstPair if problem.startswith("rank1") else First, problem=problem)


@pytest.mark.parametrize("name", ["DCM", "PBM", "UBM"])
def test_the_first_labels_of_a_fitted_model_have_the_regret_of_random(name):
    check(First, models=models(name, (6, 8), K=3))
    if name == "PBM":
        check(FirstPair, models=models(name, (6, 8), K=3))
