"""The score of every model, against differences of its log-likelihood."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit

from logeval.clicks.quality.sensitivity import item_fields, logit_values, score, shared_size
from tests.clicks.examples import ALL, all_patterns, random_model

K, L = 4, 5


def moved(model, number, by, width):
    """The model with the logit of one parameter moved, in the numbering of ``score``."""
    fields = item_fields(type(model))
    if number < L * len(fields):
        field, at = fields[number // L], number % L
        value = np.array(getattr(model, field))
        value[at] = expit(logit(value[at]) + by)
        return replace(model, **{field: value})
    start = L * len(fields)
    for p in model.PARAMETERS:
        size = {"item": 0, "position": width, "transition": width * (width + 1), "scalar": 1}
        if number < start + size[p.kind]:
            value = np.array(getattr(model, p.field), dtype=float)
            at = number - start
            where = () if p.kind == "scalar" else (at,)
            if p.kind == "transition":
                where = divmod(at, width + 1)
            value[where] = expit(logit(value[where]) + by)
            return replace(model, **{p.field: float(value) if p.kind == "scalar" else value})
        start += size[p.kind]
    raise AssertionError(number)


@pytest.mark.parametrize("name", ALL)
def test_the_score_is_the_slope_of_the_log_likelihood(name):
    rng = np.random.default_rng(3)
    model = random_model(name, rng, L=L, K=K, low=0.1, high=0.9)
    c = all_patterns(3)  # shorter than K: positions beyond the list have no score
    if name == "CM":
        c = c[c.sum(axis=1) <= 1]
    A = np.array([rng.permutation(L)[:3] for _ in c])
    s, parameter = score(model, A, c, K)
    dense = np.zeros((len(c), L * len(item_fields(type(model))) + shared_size(type(model), K)))
    np.add.at(dense, (np.arange(len(c))[:, None], parameter), s)
    assert len(logit_values(model, K)) == dense.shape[1]
    h = 1e-5
    for number in range(dense.shape[1]):
        up, down = (moved(model, number, by, K).log_likelihood(A, c) for by in (h, -h))
        assert dense[:, number] == pytest.approx((up - down) / (2 * h), abs=1e-6)


@pytest.mark.parametrize("name", ["PBM", "UBM", "DCM", "DBN", "CCM"])
def test_the_score_has_mean_zero_over_all_clicks(name):
    rng = np.random.default_rng(4)
    model = random_model(name, rng, L=L, K=K, low=0.1, high=0.9)
    c = all_patterns(K)
    A = np.tile(rng.permutation(L)[:K], (len(c), 1))
    s, _ = score(model, A, c, K)
    mean = np.exp(model.log_likelihood(A, c)) @ s
    assert mean == pytest.approx(np.zeros(s.shape[1]), abs=1e-12)
