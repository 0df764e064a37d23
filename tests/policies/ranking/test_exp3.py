"""The weights of RankedExp3; its lists are compared with the reference."""

import numpy as np
import pytest

from logeval.policies.ranking.exp3 import Weights, auer_gamma, reweigh


def test_auer_gamma_worked_out_by_hand():
    assert auer_gamma(np.array([10]), 1000)[0] == pytest.approx(
        (10 * np.log(10) / ((np.e - 1) * 1000)) ** 0.5
    )
    assert auer_gamma(np.array([1000]), 1)[0] == 1.0


def test_weights_stay_finite_when_one_item_is_always_clicked():
    weights = Weights(W=np.ones(3), blocks=np.array([3.0]), total=np.array([3.0]))
    for _ in range(5000):
        reweigh(0, 0.5, weights)
    assert all(np.isfinite(values).all() for values in weights)
    assert weights.W[0] / weights.total[0] > 0.999999
