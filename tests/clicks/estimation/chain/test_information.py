"""The observed information of chain models, against differences of the model's own likelihood."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

from logeval.clicks.estimation import information
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.models import ccm, dbn, dcm
from logeval.clicks.models.registry import MODELS
from tests.clicks.examples import random_model, statistics_of

BY_EM = {"DCM": dcm.DCM_EM, "SDBN": dbn.SDBN_EM, "DBN": dbn.DBN_EM, "CCM": ccm.CCM_EM}


@pytest.mark.parametrize("name", BY_EM)
def test_information_is_minus_the_second_derivative_of_the_likelihood(name):
    rng = np.random.default_rng(2)
    truth = random_model(name, rng, L=5, K=4, low=0.2, high=0.8)
    data = patterns_of(statistics_of([truth], 60, rng, spread=3.0))
    em = BY_EM[name]
    at = random_model(name, rng, L=data.I, K=4, low=0.2, high=0.8)  # not at the maximum
    fields = [p.field for p in MODELS[name].PARAMETERS]
    flat = np.concatenate([np.ravel(getattr(at, f)) for f in fields])
    sizes = np.cumsum([np.size(getattr(at, f)) for f in fields])[:-1]

    def likelihood(z):
        parts = dict(zip(fields, np.split(expit(z), sizes), strict=True))
        values = {f: x if np.ndim(getattr(at, f)) else float(x[0]) for f, x in parts.items()}
        model = MODELS[name](items=at.items, K=4, **values)
        return data.count @ model.log_likelihood(data.items, data.clicks)

    z, h = logit(flat), 1e-3
    N = len(z)
    unit = h * np.eye(N)
    expected = np.array(
        [
            [
                likelihood(z + unit[i] - unit[j]) + likelihood(z - unit[i] + unit[j])
                - likelihood(z + unit[i] + unit[j]) - likelihood(z - unit[i] - unit[j])
                for j in range(N)
            ]
            for i in range(N)
        ]
    ) / (4 * h * h)  # fmt: skip

    x = {f: np.asarray(getattr(at, f)) for f in fields}
    x = {f: v if f in em.items else v[None] for f, v in x.items()}
    ((q, J),) = information.informations(data, em.formulas, em.slopes, em.items, x)
    assert q == 0
    assert J == pytest.approx(expected, abs=2e-3)


def test_variances_without_correlations_of_items_are_near_those_with(monkeypatch):
    """For queries of more items than MAX_DENSE; for the DCM little is lost by it."""
    rng = np.random.default_rng(4)
    truth = random_model("DCM", rng, L=8, K=4, low=0.2, high=0.8)
    data = patterns_of(statistics_of([truth], 400, rng, spread=3.0))
    em, w, v = BY_EM["DCM"], truth.w[: data.I], truth.v[None]
    strength = {"w": np.ones_like(w), "v": np.ones_like(v)}
    arguments = (data, em.formulas, em.slopes, em.items, {"w": w, "v": v}, strength)
    dense = information.shared_variances(*arguments)["v"]
    monkeypatch.setattr(information, "MAX_DENSE", 0)
    diagonal = information.shared_variances(*arguments)["v"]
    assert diagonal == pytest.approx(dense, rel=0.05)
    assert not np.array_equal(diagonal, dense)


@pytest.mark.parametrize("block", [1, 20_000])
def test_variances_are_the_diagonal_of_the_inverse_of_all_information(monkeypatch, block):
    """Of two queries, each inverted at once; one without patterns has its prior."""
    rng = np.random.default_rng(6)
    truths = [random_model("DCM", rng, L=L, K=4, low=0.2, high=0.8) for L in (6, 8, 5)]
    data = patterns_of(statistics_of(truths, 100, rng, spread=3.0))
    data = data.take(data.query < 2)
    em = BY_EM["DCM"]
    x = {"w": rng.uniform(0.2, 0.8, data.I), "v": rng.uniform(0.2, 0.8, (3, 4))}
    strength = {"w": rng.uniform(1, 9, data.I), "v": rng.uniform(1, 9, (3, 4))}
    prior = {f: strength[f] * x[f] * (1 - x[f]) for f in x}
    monkeypatch.setattr(information, "BLOCK", block)
    found = information.shared_variances(data, em.formulas, em.slopes, em.items, x, strength)["v"]
    for q, J in information.informations(data, em.formulas, em.slopes, em.items, x):
        own = prior["w"][data.offsets[q] : data.offsets[q + 1]]
        whole = J + np.diag(np.append(own, prior["v"][q]))
        assert found[q] == pytest.approx(np.diag(np.linalg.inv(whole))[-4:], rel=1e-6)
    assert found[2] == pytest.approx(1 / prior["v"][2])
