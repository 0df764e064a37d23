import math

import numpy as np
import pytest

from logeval.errors import LogevalError
from logeval.evaluation.evaluate import evaluate
from logeval.policies.shared.bounds import kl
from logeval.tracks import lists
from reproduction import theorems

W = np.array([0.2] * 4 + [0.05] * 12)


def test_theorem_2_of_cascading_bandits_by_hand():
    expected = 12 * 12 / 0.15 * math.log(1e5) + math.pi**2 / 3 * 16
    assert theorems.cascade_ucb1_upper(W, 4, 100_000) == pytest.approx(expected)


def test_theorem_3_of_cascading_bandits_by_hand():
    n = 100_000
    loglog = math.log(math.log(n))
    term = 0.15 * (1 + math.log(1 / 0.15)) / kl(0.05, 0.2)
    expected = 12 * term * (math.log(n) + 3 * loglog) + 28 * loglog
    assert theorems.cascade_kl_upper(W, 4, n) == pytest.approx(expected)


def test_theorem_2_of_dcm_bandits_becomes_theorem_1_when_terminations_are_equal():
    n, gamma, alpha = 100_000, 0.5, 0.8**3
    expected = gamma / alpha * theorems.cascade_kl_upper(W, 4, n)
    assert theorems.dcm_upper(W, np.full(4, gamma), n) == pytest.approx(expected)


def test_theorem_2_of_dcm_bandits_by_hand():
    w, v, n = np.array([0.5, 0.3, 0.1]), np.array([0.4, 0.9]), 1000
    alpha = 0.5
    expected = 0.5 / alpha * theorems.cascade_kl_upper(w, 1, n)
    expected += 0.4 / alpha * theorems.cascade_kl_upper(w, 2, n)
    assert theorems.dcm_upper(w, v, n) == pytest.approx(expected)


def test_regret_lies_between_the_bounds():
    n, gamma = 5000, 0.5
    runs = evaluate(
        problem=f"B_LB(L=16,K=4,p=0.2,gap=0.15,gamma={gamma})",
        policies=["dcmKL-UCB"], horizon=n, runs=5, quiet=True,
    )  # fmt: skip
    regret = runs.summary()["regret"][0]
    slope = lists.dcm_lower_slope(16, 4, 0.2, 0.15, gamma)
    assert slope == pytest.approx(gamma * lists.cascade_lower_slope(16, 4, 0.2, 0.15))
    assert slope * math.log(n) < regret < theorems.dcm_upper(W, np.full(4, gamma), n)


def test_bounds_without_a_gap_are_refused():
    with pytest.raises(LogevalError, match="gap"):
        theorems.cascade_kl_upper(np.full(5, 0.2), 2, 100)
