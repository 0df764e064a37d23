"""The weights of RankedExp3; its lists are compared with the reference."""

import numpy as np
import pytest

from logeval.policies.ranked import Weights, auer_gamma, draw, reweigh
from tests.policies.running import one_replica


def test_auer_gamma_worked_out_by_hand():
    assert auer_gamma(np.array([10]), 1000)[0] == pytest.approx(
        (10 * np.log(10) / ((np.e - 1) * 1000)) ** 0.5
    )
    assert auer_gamma(np.array([1000]), 1)[0] == 1.0


def test_weights_stay_finite_when_one_item_is_always_clicked():
    weights = one_replica(Weights(), 3)
    weights.blocks[:], weights.total[:], weights.gamma[:] = 3.0, 3.0, 0.5
    for _ in range(5000):
        weights.P[0] = 0.5 * weights.W[0, 0] / weights.total[0] + 0.5 / 3
        reweigh(0, weights)
    assert all(np.isfinite(values).all() for values in weights)
    assert weights.W[0, 0] / weights.total[0] > 0.999999


def test_an_item_is_drawn_with_the_probability_that_its_weight_is_divided_by():
    # 40 items in two blocks, three of them taken: P of the rest, scaled to 1
    rng, gamma, L, listed = np.random.default_rng(0), 0.3, 40, np.array([1, 5, 35])
    W = rng.lognormal(size=L)
    weights = one_replica(Weights(), L)
    weights.W[:], weights.total[:], weights.gamma[:] = W, W.sum(), gamma
    weights.blocks[:] = W[:32].sum(), W[32:].sum()
    taken = weights.taken
    taken[listed] = True
    P = (1 - gamma) * W / W.sum() + gamma / L
    P[taken] = 0.0
    P /= P.sum()
    u = (np.arange(20_000) + 0.5) / 20_000
    drawn = [draw(x, 0, taken, listed, 3, weights) for x in u]
    items = np.array([e for e, _ in drawn])
    assert [p for _, p in drawn] == pytest.approx(P[items])
    assert np.bincount(items, minlength=L) / len(u) == pytest.approx(P, abs=2 / len(u))
