"""Priors: fitted to the items, and used where nothing was seen."""

from __future__ import annotations

import numpy as np
import pytest

from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.estimation.priors import fit_beta
from logeval.clicks.models.registry import MODELS
from tests.clicks.examples import random_model, statistics_of


def test_empirical_bayes_finds_the_beta_and_tames_rare_items():
    rng = np.random.default_rng(6)
    den = rng.integers(1, 50, 4000).astype(float)
    num = rng.binomial(den.astype(int), rng.beta(1.5, 8.0, 4000)).astype(float)
    a, b = fit_beta(num, den, np.zeros(4000, int), 1)
    assert a[0] == pytest.approx(1.5, rel=0.1)
    assert b[0] == pytest.approx(8.0, rel=0.1)

    truth = random_model("DCTR", rng, L=40, K=5, low=0.02, high=0.1)
    data = patterns_of(statistics_of([truth], 200, rng, spread=0.4))
    rare = data.impressions <= 3
    assert rare.any()
    shrunk = MODELS["DCTR"].fit(data, Options("counting")).estimates["ctr"].value
    laplace = MODELS["DCTR"].fit(data, Options("counting", smoothing="pyclick"))
    assert shrunk[rare].max() < 0.15
    assert laplace.estimates["ctr"].value[rare].min() > 0.15


def test_without_a_prior_an_unseen_item_has_the_mean_of_the_fitted_ones(data):
    fit = MODELS["SDBN"].fit(data, Options("em", smoothing="none"))
    for field in ("w", "s"):
        estimate = fit.estimates[field]
        for q in range(data.Q):
            span = slice(data.offsets[q], data.offsets[q + 1])
            mean = np.average(estimate.value[span], weights=estimate.observations[span])
            assert fit.priors[field].mean[q] == pytest.approx(mean, abs=2e-3)
