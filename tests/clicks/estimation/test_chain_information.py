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


@pytest.mark.parametrize("block", [1, 20_000])
def test_variances_are_the_diagonal_of_the_inverse_of_all_information(monkeypatch, block):
    """Of two queries that share v, inverted at once; a group without patterns has its prior."""
    rng = np.random.default_rng(6)
    truths = [random_model("DCM", rng, L=L, K=4, low=0.2, high=0.8) for L in (6, 8)]
    data = patterns_of(statistics_of(truths, 100, rng, spread=3.0))
    em, w, v = BY_EM["DCM"], rng.uniform(0.2, 0.8, data.I), rng.uniform(0.2, 0.8, (2, 4))
    strength = {"w": rng.uniform(1, 9, data.I), "v": rng.uniform(1, 9, (2, 4))}
    whole = np.diag(
        np.concatenate([strength["w"] * w * (1 - w), strength["v"][0] * v[0] * (1 - v[0])])
    )
    add_to, queries = chain_information._Local.add_to, iter(range(2))

    def keep(self, J, rows):
        add_to(self, J, rows)
        q = next(queries)
        items = np.arange(data.offsets[q], data.offsets[q + 1])
        at = np.append(items, data.I + np.arange(4))
        whole[np.ix_(at, at)] += J

    monkeypatch.setattr(chain_information._Local, "add_to", keep)
    monkeypatch.setattr(chain_information, "BLOCK", block)
    found = chain_information.variances(
        data, np.zeros(2, int), em.formulas, em.slopes, {"w": w}, {"v": v}, strength
    )
    expected = np.diag(np.linalg.inv(whole))
    assert found["w"] == pytest.approx(expected[: data.I], rel=1e-6)
    assert found["v"][0] == pytest.approx(expected[data.I :], rel=1e-6)
    assert found["v"][1] == pytest.approx(1 / (strength["v"][1] * v[1] * (1 - v[1])))
