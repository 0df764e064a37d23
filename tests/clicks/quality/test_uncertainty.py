"""The information of training lists, and draws of errors from its inverse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.fitting import fit_one
from logeval.clicks.models.registry import MODELS
from logeval.clicks.quality import uncertainty
from logeval.clicks.quality.sensitivity import logit_values, score, shared_size
from logeval.clicks.quality.simulate import QueryRows
from logeval.clicks.quality.uncertainty import ParameterErrors, information, prior_information
from tests.clicks.examples import all_patterns, random_model, statistics_of

K = 3


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(2)
    models = [random_model("DCM", rng, L=4, K=K, low=0.2, high=0.7) for _ in range(2)]
    return patterns_of(statistics_of(models, 300, rng))


def exact_information(model, query, data):
    """E[score score'] over all click patterns of every list."""
    c = all_patterns(K)
    out = np.zeros((4 + 1 + K, 4 + 1 + K))
    for batch in QueryRows(data).batches(query, model):
        for a, n in zip(batch.A, batch.count, strict=True):
            A = np.tile(a, (len(c), 1))
            s, parameter = score(model, A, c, K)
            p = n * np.exp(model.log_likelihood(A, c))
            for row, at, weight in zip(s, parameter, p, strict=True):
                out[np.ix_(at, at)] += weight * np.outer(row, row)
    return out


def test_information_is_the_mean_of_all_click_patterns(data, monkeypatch):
    monkeypatch.setattr(uncertainty, "USERS", 400)
    fitted = fit_one("DCM", data, Options("em"))
    query = data.queries[0]
    model = fitted.of(query, unseen=True, K=K)
    found = information(model, query, QueryRows(data), K, np.random.default_rng(0))
    exact = exact_information(model, query, data)
    scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact))) + 1e-9
    assert np.abs((found - exact) / scale).max() < 0.05  # some 20,000 users
    assert exact[-1, -1] == pytest.approx(0)  # v of the last position


@pytest.mark.parametrize("scope", ["per-query", "pooled"])
def test_errors_are_drawn_from_the_inverse_of_all_information_together(data, scope, monkeypatch):
    fitted = fit_one("DCM", data, Options("em", scope))
    blocks = {}
    plain = uncertainty.information

    def kept(model, query, *rest):
        blocks[query] = plain(model, query, *rest)
        return blocks[query].copy()

    monkeypatch.setattr(uncertainty, "information", kept)
    n = 20_000
    errors = ParameterErrors(fitted, QueryRows(data), data.queries, K, n, seed=1)
    drawn = [errors.draw(query) for query in data.queries]
    P = 5  # four items and the one for those never seen
    dense = np.zeros((2 * P + 2 * K, 2 * P + 2 * K))
    for q, query in enumerate(data.queries):
        model = fitted.of(query, unseen=True, K=K)
        prior = uncertainty.prior_information(fitted, query, model, K)
        start = 2 * P + (K * q if scope == "per-query" else 0)
        at = np.concatenate([np.arange(P * q, P * (q + 1)), np.arange(start, start + K)])
        dense[np.ix_(at, at)] += blocks[query]
        dense[at[:P], at[:P]] += prior[:P]
        if scope == "per-query" or q == 1:
            dense[at[P:], at[P:]] += prior[P:]
    used = 2 * P + (2 * K if scope == "per-query" else K)
    wanted = np.linalg.inv(dense[:used, :used])
    shared = [d[P:] for d in drawn] if scope == "per-query" else [drawn[0][P:]]
    together = np.concatenate([drawn[0][:P], drawn[1][:P], *shared])
    if scope == "pooled":
        assert drawn[0][P:] == pytest.approx(drawn[1][P:])
    found = together @ together.T / n
    scale = np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)))
    assert np.abs((found - wanted) / scale).max() < 5 * np.sqrt(2 / n)


@pytest.mark.parametrize("name", ["RCTR", "DCM", "PBM", "UBM", "DBN"])
def test_the_prior_of_shared_parameters_is_that_of_the_fit(name):
    rng = np.random.default_rng(3)
    v = rng.uniform(0.3, 0.7, K)  # alike in all queries, so that partial shrinks strongly
    models = [replace(random_model("DCM", rng, L=4, K=K, low=0.2, high=0.7), v=v) for _ in range(8)]
    data = patterns_of(statistics_of(models, 150, rng))
    shared = shared_size(MODELS[name], K)
    found = {}
    for scope in ("per-query", "partial"):
        fitted = fit_one(name, data, Options(MODELS[name].methods[0], scope))
        query = data.queries[0]
        model = fitted.of(query, unseen=True, K=K)
        x = logit_values(model, K)[-shared:]
        information = prior_information(fitted, query, model, K)[-shared:]
        found[scope] = information / np.maximum(x * (1 - x), 1e-6)
    assert found["per-query"] == pytest.approx(np.full(shared, 2.0))  # Beta(1, 1)
    relied = MODELS[name].fit(data, Options(MODELS[name].methods[0])).shared_strength
    strength = np.concatenate([np.ravel(x) for x in relied.values()])
    assert found["partial"] == pytest.approx(np.maximum(strength, 1.0), abs=1e-5)
    assert (np.abs(found["partial"] - 2.0) > 0.5).any()
