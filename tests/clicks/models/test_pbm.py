"""The PBM: its likelihood, and its free scale."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.models.registry import MODELS
from tests.clicks.examples import table_of


def test_em_ends_at_the_largest_likelihood(data):
    """L-BFGS on the logits of the model's own likelihood, without a prior, query by query."""
    fit = MODELS["PBM"].fit(data, Options("em", "per-query", "none", tolerance=1e-13))
    shown, most = data.shown, 0.0
    for q in range(data.Q):
        mine = shown.query == q
        items, item = np.unique(shown.item[mine], return_inverse=True)
        k, n, clicked = shown.position[mine], shown.count[mine], shown.clicked[mine]

        def cost(z, item=item, k=k, n=n, clicked=clicked):
            x = expit(z[data.K :])[item] * expit(z)[k]
            return -n @ np.where(clicked, np.log(x), np.log1p(-x))

        start = np.zeros(len(items) + data.K)
        most -= minimize(cost, start, bounds=[(-14, 14)] * len(start), tol=1e-12).fun
    assert fit.trace[-1] == pytest.approx(most, rel=1e-5)


def test_the_pbm_is_scaled_to_a_largest_examination_of_one(data):
    fit = MODELS["PBM"].fit(data, Options("em"))
    assert fit.estimates["e"].value.max(axis=1) == pytest.approx(1.0)
    assert fit.estimates["w"].value.max() <= 1.0


def test_positions_beyond_the_lists_of_a_query_are_not_examined():
    """Nor do they set its scale; a position that was seen once has a value."""
    short = [
        (1, [1, 2], 0b01, 6), (1, [1, 2], 0b10, 4), (1, [2, 1], 0b01, 3), (1, [2, 1], 0b10, 2),
        (1, [1, 2], 0b00, 5),
    ]  # fmt: skip
    long = [
        (0, [1, 2], 0b01, 20), (0, [2, 1], 0b01, 9), (0, [2, 1], 0b10, 5), (0, [1, 2], 0b00, 8),
        (0, [2, 1, 3], 0b100, 1),
    ]  # fmt: skip
    options = Options("em", "per-query", "none")
    both, alone = (
        MODELS["PBM"].fit(patterns_of(table_of(rows)), options).estimates
        for rows in (long + short, short)
    )
    assert both["e"].value[0, 2] > 0
    assert both["e"].value[1, 2] == 0
    assert both["e"].value[1, :2] == pytest.approx(alone["e"].value[0])
    assert both["w"].value[-2:] == pytest.approx(alone["w"].value)
