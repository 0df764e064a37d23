"""Lazy selection of the best pair must never change it."""

import numpy as np
import pytest

from logeval.tracks.rank1 import Rank1Environment, Rank1Problem, needle
from tests.policies.running import make


@pytest.mark.parametrize("name", ["UCB1", "KL-UCB"])
@pytest.mark.parametrize(
    "problem",
    [
        needle(20, 9, 0.25, 0.5),
        needle(40, 40, 0.0, 1.0),
        Rank1Problem("PBM", "1", np.linspace(0, 1, 70), np.array([1.0, 0.3, 0.0])),
    ],
)
def test_lazy_and_eager_pairs_are_identical(name, problem):
    histories = []
    for lazy in (True, False):
        environment = Rank1Environment([problem], [(0, 0), (0, 1)], 0)
        policy = make(name, environment, 3000, lazy=lazy)
        pairs = []
        for t in range(1, 3001):
            A = policy.recommend(t)
            pairs.append(A.copy())
            policy.update(t, A, environment.step(A))
        histories.append(np.array(pairs))
    assert (histories[0] == histories[1]).all()
