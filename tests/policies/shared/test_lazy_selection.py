"""Lazy selection, step by step, against sorting all bounds: whatever is observed or left out."""

import numpy as np
import pytest

from logeval.policies import pairs
from logeval.policies.shared import topk
from logeval.policies.shared.bounds import KL, UCB1, kl_budget
from logeval.policies.shared.topk import BLOCK
from tests.policies.running import by_bound, one_replica

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
