"""Lazy selection of the best pair must never change it."""

import numpy as np
import pytest

from logeval.tracks.rank1 import Rank1Environment, Rank1Problem, needle
from tests.policies.running import by_bound, make


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
