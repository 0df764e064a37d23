"""GRAB: assignments stay best, lists are the leader's or a neighbour's."""

import numpy as np
import pytest
from scipy import optimize

from logeval.policies import grab
from tests.policies.running import SETTING_A, make, one_replica, steps, users_of


def test_assignment_stays_best_while_values_change():
    rng = np.random.default_rng(1)
    for L, K in [(5, 5), (7, 3), (1, 1), (30, 4)]:
        best = one_replica(grab.Assignment(), L, K)
        best.A[:] = np.arange(K)
        M, k = np.zeros((L, K)), np.arange(K)
        for _ in range(300):
            shown = rng.permutation(L)[:K]
            M[shown, k] = rng.integers(0, 5, K) / 4
            grab.reassign(shown, M, best)
            rows, columns = optimize.linear_sum_assignment(-M.T)
            assert M[best.A, k].sum() == pytest.approx(M[columns, rows].sum())
            assert len(set(best.A.tolist())) == K


@pytest.mark.parametrize("name", ["GRAB", "S-GRAB"])
def test_grab_shows_the_leader_or_differs_in_two_places(name):
    users = users_of(SETTING_A, runs=2)
    policy = make(name, users, 1500)
    leaders, gamma = policy.memory.leaders, 9 if name == "GRAB" else 35
    for _, lists, _ in steps(policy, users, 1500):
        for r in range(2):
            labels = lists[r]
            leader = policy.memory.best.A[r]
            differing = (labels != leader).sum()
            assert differing <= 2
            tau = leaders.tau[r, leaders.now[r, 0]] - 1  # counted by now
            if tau % gamma == 0:
                assert differing == 0
