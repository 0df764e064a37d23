"""What clicks say of shared parameters, the items being unknown, against the likelihood itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

from logeval.clicks.estimation import latent
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.latent import inverse_of
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.models.registry import MODELS
from tests.clicks.examples import random_model, statistics_of

K, G, PRIOR = 3, 2, 4.0


NEAR = {"PBM": 1e-3, "DCM": 0.03, "DBN": 0.2, "CCM": 0.2}


@pytest.mark.parametrize("name", NEAR)
def test_evidence_is_what_is_left_when_the_items_are_eliminated(name):
    """Exact where items do not meet further down a list, and near to it for chains.

    Of the logits of all parameters of a query, by second differences of the model's likelihood.
    """
    rng = np.random.default_rng(4)
    truths = [random_model(name, rng, L=5, K=K, low=0.3, high=0.7) for _ in range(G)]
    data = patterns_of(statistics_of(truths, 2000, rng, spread=3.0))
    kind, beside = MODELS[name], MODELS[name].beside(data, Options("em"))
    fields = [p.field for p in kind.PARAMETERS]
    ordered = [truths[query.query_id] for query in data.queries]
    x = {f: np.stack([getattr(one, f) for one in ordered]) for f in fields}
    place = data.item_ids.reshape(G, 5) - 100
    x |= {f: np.take_along_axis(x[f], place, axis=1).ravel() for f in beside.items}
    pseudo = {f: (np.full(v.shape if f in beside.items else v.shape[1:], PRIOR / 2),) * 2
              for f, v in x.items()}  # fmt: skip
    found = beside.shared_evidence(data, x, pseudo)
    for q in range(G):
        rows, span = data.query == q, slice(data.offsets[q], data.offsets[q + 1])
        own = {f: v[span] if f in beside.items else v[q] for f, v in x.items()}
        flat = np.concatenate([np.ravel(own[f]) for f in fields])
        sizes = np.cumsum([np.size(own[f]) for f in fields])[:-1]

        def likelihood(z, rows=rows, sizes=sizes, q=q):
            parts = dict(zip(fields, np.split(expit(z), sizes), strict=True))
            parts = {f: v if x[f].ndim > 1 or f in beside.items else v[0] for f, v in parts.items()}
            model = kind(items=np.arange(5), K=K, **parts)
            A = data.items[rows] - data.offsets[q]
            return data.count[rows] @ model.log_likelihood(A, data.clicks[rows])

        z, unit = logit(flat), 1e-3 * np.eye(len(flat))
        J = -np.array([[likelihood(z + i + j) - likelihood(z + i - j) - likelihood(z - i + j)
                        + likelihood(z - i - j) for j in unit] for i in unit]) / 4e-6  # fmt: skip
        n = sum(np.size(own[f]) for f in beside.items)
        spread = flat * (1 - flat)
        items = J[:n, :n] + np.diag(PRIOR * spread[:n])
        left = J[n:, n:] - J[n:, :n] @ np.linalg.inv(items) @ J[:n, n:]
        variance = np.diag(np.linalg.inv(left + np.diag(PRIOR * spread[n:])))
        trials = np.maximum(1 / (variance * spread[n:]) - PRIOR, 0.0)
        got = np.concatenate([np.ravel(found[f][1][q]) for f in fields if f not in beside.items])
        told = trials > 1.0  # of v at the last position nothing is
        assert told.any()
        assert got[told] == pytest.approx(trials[told], rel=NEAR[name])


def test_only_the_most_frequent_queries_are_asked(monkeypatch):
    monkeypatch.setattr(latent, "MOST_QUERIES", 1)
    rng = np.random.default_rng(2)
    truths = [random_model("DCM", rng, L=5, K=K, low=0.3, high=0.7) for _ in range(G)]
    data = patterns_of(statistics_of(truths, 200, rng))
    beside = MODELS["DCM"].beside(data, Options("em"))
    x = {"w": np.full(data.I, 0.4), "v": np.full((G, K), 0.5)}
    one = (np.ones(data.I),) * 2
    _, trials = beside.shared_evidence(data, x, {"w": one, "v": (np.ones(K),) * 2})["v"]
    assert trials[0, 0] > 1.0
    assert not trials[1].any()


def test_matrices_are_inverted_along_every_direction():
    """Where there is information, by it; where there is none, or less, the variance is huge."""
    rng = np.random.default_rng(3)
    vectors = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    values = rng.uniform(1.0, 2.0, 6)
    found = inverse_of((vectors * values) @ vectors.T)
    assert found == pytest.approx((vectors / values) @ vectors.T, abs=1e-7)
    values[0] = -1.0
    along = np.diag(vectors.T @ inverse_of((vectors * values) @ vectors.T) @ vectors)
    assert along[0] > 1e8
    assert along[1:] == pytest.approx(1.0 / values[1:], abs=1e-5)
