"""The observed information of chain models, against differences of the model's own likelihood."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

from logeval.clicks.estimation import chain_information
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.models import ccm, dbn, dcm
from logeval.clicks.models.registry import MODELS
from tests.clicks.examples import random_model, statistics_of

BY_EM = {"DCM": dcm.DCM_EM, "SDBN": dbn.SDBN_EM, "DBN": dbn.DBN_EM, "CCM": ccm.CCM_EM}


@pytest.mark.parametrize("name", BY_EM)
def test_information_is_minus_the_second_derivative_of_the_likelihood(name, monkeypatch):
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

    found = {}

    def keep(data, q, local, rows, information, item, S):
        found["J"] = np.zeros((N, N))
        local.add_to(found["J"], rows)
        return chain_information._Part(q, np.ones(N - S), np.zeros((N - S, S)), np.eye(S))

    monkeypatch.setattr(chain_information, "_block", keep)
    item = {f: np.asarray(getattr(at, f)) for f in em.items}
    shared = {f: np.asarray(getattr(at, f))[None] for f in fields if f not in em.items}
    strength = {f: np.zeros_like(x) for f, x in (item | shared).items()}
    chain_information.variances(
        data, np.zeros(1, int), em.formulas, em.slopes, item, shared, strength
    )
    assert found["J"] == pytest.approx(expected, abs=2e-3)


def test_variances_without_correlations_of_items_are_near_those_with(monkeypatch):
    """For queries of more items than MAX_DENSE; for the DCM little is lost by it."""
    rng = np.random.default_rng(4)
    truth = random_model("DCM", rng, L=8, K=4, low=0.2, high=0.8)
    data = patterns_of(statistics_of([truth], 400, rng, spread=3.0))
    em, w, v = BY_EM["DCM"], truth.w[: data.I], truth.v[None]
    strength = {"w": np.ones_like(w), "v": np.ones_like(v)}
    arguments = (data, np.zeros(1, int), em.formulas, em.slopes, {"w": w}, {"v": v}, strength)
    dense = chain_information.variances(*arguments)
    monkeypatch.setattr(chain_information, "MAX_DENSE", 0)
    diagonal = chain_information.variances(*arguments)
    for field in ("w", "v"):
        assert diagonal[field] == pytest.approx(dense[field], rel=0.05)
        assert not np.array_equal(diagonal[field], dense[field])
