"""The expected counts of chain models, against differences of the model's own likelihood."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import expit, logit

from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.latent import Count
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.estimation.priors import item_prior
from logeval.clicks.models.registry import MODELS
from tests.clicks.examples import random_model, statistics_of

BY_EM = ("DCM", "SDBN", "DBN", "CCM")


@pytest.mark.parametrize("name", BY_EM)
def test_expected_counts_have_the_gradient_and_curvature_of_the_likelihood(name):
    """In the logit of x these are successes - trials x (Fisher), trials x (1 - x) - missing."""
    rng = np.random.default_rng(3)
    lengths = 4, 3
    truths = [random_model(name, rng, L=5, K=K, low=0.2, high=0.8) for K in lengths]
    data = patterns_of(pa.concat_tables(statistics_of([m], 60, rng, spread=3.0) for m in truths))
    assert data.Q == 1
    at = random_model(name, rng, L=data.I, K=4, low=0.2, high=0.8)
    fields = [p.field for p in at.PARAMETERS]
    flat = np.concatenate([np.ravel(getattr(at, f)) for f in fields])
    sizes = np.cumsum([np.size(getattr(at, f)) for f in fields])[:-1]

    def likelihood(z):
        parts = dict(zip(fields, np.split(expit(z), sizes), strict=True))
        values = {f: x if np.ndim(getattr(at, f)) else float(x[0]) for f, x in parts.items()}
        model = MODELS[name](items=at.items, K=4, **values)
        total = 0.0
        for K in lengths:
            rows = data.length == K
            A, clicks = data.items[rows, :K], data.clicks[rows, :K]
            total += data.count[rows] @ model.log_likelihood(A, clicks)
        return total

    z, h = logit(flat), 1e-4
    here = likelihood(z)
    up, down = (np.array([likelihood(z + s * e) for e in np.eye(len(z))]) for s in (h, -h))
    gradient = dict(zip(fields, np.split((up - down) / (2 * h), sizes), strict=True))
    curvature = dict(zip(fields, np.split((2 * here - up - down) / h**2, sizes), strict=True))

    x = {f: np.asarray(getattr(at, f)) for f in fields}
    model = MODELS[name].beside(data, Options("em"))
    x = {f: v if f in model.items else v[None] for f, v in x.items()}
    counts, likelihoods = model.expected(data, x)
    assert likelihoods[0] == pytest.approx(here)
    assert set(counts) == set(fields)
    for field, (successes, trials, missing) in counts.items():
        value = x[field]
        assert np.ravel(successes - trials * value) == pytest.approx(gradient[field], abs=1e-4)
        assert (missing is not None) == (field in model.items)
        if missing is not None:
            found = trials * value * (1 - value) - missing
            assert found == pytest.approx(curvature[field], abs=1e-3)


def test_evidence_has_the_gradient_and_curvature_of_the_counts():
    x = np.array([0.2, 0.7, 0.5])
    count = Count(np.array([3.0, 8.0, 1.0]), np.array([11.0, 10.0, 2.0]), np.array([0.4, 0.2, 0.5]))
    successes, trials = count.evidence(x)
    assert trials[:2] == pytest.approx([11.0 - 0.4 / 0.16, 10.0 - 0.2 / 0.21])
    assert (successes - trials * x)[:2] == pytest.approx([3.0 - 11.0 * 0.2, 8.0 - 10.0 * 0.7])
    assert [successes[2], trials[2]] == [0.0, 0.0]  # all the evidence is missing


@pytest.mark.parametrize("name", ["DCM", "SDBN", "CCM"])
def test_the_prior_of_items_is_that_of_the_values_it_leads_to(name):
    """Values and prior depend on each other: they have settled when both are found."""
    rng = np.random.default_rng(5)
    truth = random_model(name, rng, L=20, K=5, low=0.1, high=0.6)
    data = patterns_of(statistics_of([truth], 200, rng, spread=1.5))
    fit = MODELS[name].fit(data, Options("em", "per-query", intervals=False))
    model = MODELS[name].beside(data, Options("em"))
    x = {f: e.value for f, e in fit.estimates.items()}
    counts, _ = model.expected(data, x)
    for field in model.items:
        prior = fit.priors[field]
        found = counts[field].evidence(x[field])
        again = item_prior("empirical-bayes", "per-query", data, *found, prior)
        means = [p.a / (p.a + p.b) for p in (prior, again)]
        assert means[0] == pytest.approx(means[1], abs=5e-4)
        assert prior.strength == pytest.approx(again.strength, rel=0.01)
