"""Priors: fitted to the items, and used where nothing was seen."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, special, stats

from logeval.clicks.estimation.beta import digamma, fit_betas, trigamma
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import Patterns, patterns_of
from logeval.clicks.estimation.priors import BENDS, Exposure, evidence, item_prior
from logeval.clicks.models import pbm
from logeval.clicks.models.registry import MODELS
from tests.clicks.examples import random_model, statistics_from, statistics_of


def test_empirical_bayes_finds_the_beta_and_tames_rare_items():
    rng = np.random.default_rng(6)
    den = rng.integers(1, 50, 4000).astype(float)
    num = rng.binomial(den.astype(int), rng.beta(1.5, 8.0, 4000)).astype(float)
    a, b = fit_betas(num, den, np.zeros(4000, int), 1).of(np.zeros(1, int), np.zeros((1, 0)))
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


def test_polygamma_functions_are_those_of_scipy():
    x = np.geomspace(1e-4, 1e5, 200)
    assert [digamma(y) for y in x] == pytest.approx(special.digamma(x), rel=1e-10, abs=1e-10)
    assert [trigamma(y) for y in x] == pytest.approx(special.polygamma(1, x), rel=1e-10)


@pytest.mark.parametrize("name", ["RCTR", "PBM", "DCM", "DBN", "UBM", "CCM"])
def test_partial_lies_between_the_query_alone_and_all_queries(name):
    """Queries that are alike are pooled almost wholly; in any case values move towards the mean."""
    rng = np.random.default_rng(21)
    one = random_model(name, rng, L=8, K=4, low=0.3, high=0.7)
    shared = [p.field for p in one.PARAMETERS if p.kind != "item"]
    data = patterns_of(statistics_of([one] * 12, 150, rng, spread=3.0))  # twelve equal queries
    spreads = {}
    for scope in ("per-query", "partial"):
        fit = MODELS[name].fit(data, Options(MODELS[name].methods[0], scope))
        values = np.concatenate([fit.estimates[f].value.reshape(12, -1) for f in shared], axis=1)
        spreads[scope] = values.std(axis=0)
        assert (pbm.SHRUNK in fit.notes) == (name == "PBM" and scope == "partial")
    free = spreads["per-query"] > 0.02  # of the rest nothing was seen, or it is fixed
    free[0] &= name != "UBM"  # e(1, 0) sets the scale: clicks say nothing of it
    assert free.any()
    assert (spreads["partial"][free] < 0.7 * spreads["per-query"][free]).all()


def test_queries_that_differ_are_left_apart():
    rng = np.random.default_rng(22)
    truths = [random_model("DCM", rng, L=8, K=4, low=0.1, high=0.9) for _ in range(12)]
    data = patterns_of(statistics_of(truths, 2000, rng, spread=3.0))
    alone, partial = (
        MODELS["DCM"].fit(data, Options("em", scope)).estimates["v"].value[:, 0]
        for scope in ("per-query", "partial")
    )
    assert np.abs(alone - partial).max() < 0.03
    assert partial.std() > 0.15


def test_evidence_gives_the_counts_back():
    """Of a proportion, whose information is that of its counts."""
    num, den, a, b = np.array([3.0, 40.0]), np.array([10.0, 50.0]), 2.0, 5.0
    x = (num + a) / (den + a + b)
    variance = 1.0 / ((den + a + b) * x * (1 - x))
    found = evidence(x, variance, (np.full(2, a), np.full(2, b)))
    assert found[0] == pytest.approx(num)
    assert found[1] == pytest.approx(den)
    known = evidence(x, np.zeros(2), (np.full(2, a), np.full(2, b)))
    assert not known[1].any()  # fixed: nothing is said of it


def test_without_a_prior_the_unseen_have_the_mean_of_what_was_counted(data):
    """Of the query, or of the log where nothing of the query was counted."""
    num, den = np.zeros(data.I), np.zeros(data.I)
    second, third = (np.flatnonzero(data.item_query == q) for q in (1, 2))
    num[second[0]], den[second[0]] = 1.0, 1.0
    num[third], den[third] = 2.0, 5.0
    prior = item_prior("none", "partial", data, num, den)
    log_mean = (1 + 2 * len(third)) / (1 + 5 * len(third))
    assert prior.log_mean == pytest.approx(log_mean)
    assert prior.mean == pytest.approx([log_mean, 1.0, 0.4])
    assert not prior.a.any()
    assert not prior.b.any()


def betas_by_search(num, den, x=None):
    """Level, ln kappa and slope of the largest beta-binomial likelihood, slopes N(0, 1)."""

    def cost(z):
        mean = special.expit(z[0] + (0.0 if x is None else z[2] * x))
        a, b = np.exp(z[1]) * mean, np.exp(z[1]) * (1 - mean)
        loss = -stats.betabinom.logpmf(num, den, a, b).sum()
        return loss if x is None else loss + z[2] ** 2 / 2

    start = [0.0, 0.0] if x is None else [0.0, 0.0, 0.0]
    options = {"xatol": 1e-8, "fatol": 1e-10, "maxiter": 5000, "maxfev": 5000}
    return optimize.minimize(cost, start, method="Nelder-Mead", options=options).x


def test_betas_are_those_of_the_largest_likelihood_with_and_without_a_covariate():
    rng = np.random.default_rng(8)
    den = rng.integers(5, 60, 60)
    x = rng.normal(size=60)
    mean = special.expit(-1.0 + 0.8 * x)
    num = rng.binomial(den, rng.beta(6 * mean, 6 * (1 - mean)))
    one = np.zeros(60, int)
    plain = fit_betas(num * 1.0, den * 1.0, one, 1)
    level, log_kappa = betas_by_search(num, den)
    assert plain.level[0] == pytest.approx(level, abs=1e-4)
    assert plain.strength[0] == pytest.approx(np.exp(log_kappa), rel=1e-3)
    tilted = fit_betas(num * 1.0, den * 1.0, one, 1, x[:, None], np.zeros(1, int))
    level, log_kappa, slope = betas_by_search(num, den, x)
    assert tilted.level[0] == pytest.approx(level, abs=1e-3)
    assert tilted.strength[0] == pytest.approx(np.exp(log_kappa), rel=3e-3)
    assert tilted.slope[0, 0] == pytest.approx(slope, abs=1e-3)


def test_groups_share_a_slope_or_have_their_own():
    rng = np.random.default_rng(9)
    den, group = np.full(120, 40.0), np.repeat([0, 1], 60)
    x = rng.normal(size=120)
    num = rng.binomial(40, special.expit(-1.0 + np.array([0.2, 1.0])[group] * x)).astype(float)
    shared = fit_betas(num, den, group, 2, x[:, None], np.zeros(2, int)).slope[:, 0]
    own = fit_betas(num, den, group, 2, x[:, None], np.arange(2)).slope[:, 0]
    assert shared[0] == shared[1]
    assert own == pytest.approx([0.2, 1.0], abs=0.15)
    assert own[0] < shared[0] < own[1]


def test_a_query_has_the_beta_of_its_own_items_if_it_has_ten():
    """Twelve seen items; nine, and five that were not seen; ten that were seen once each."""
    offsets = np.array([0, 12, 26, 36])
    items = np.concatenate([np.arange(12), np.arange(12, 26), np.arange(26, 36)])
    data = Patterns(
        ["x", "y", "z"], np.repeat([0, 1, 2], [12, 14, 10]), items[:, None],  # type: ignore[list-item]
        np.zeros((36, 1), bool), np.ones(36, int), np.ones(36), np.arange(36), offsets,
    )  # fmt: skip
    first = np.array([2, 31, 9, 1, 14, 22, 5, 3, 17, 8, 27, 11])
    second = np.array([20, 28, 33, 37, 38, 12, 30, 25, 35])
    num = np.concatenate([first, second, np.zeros(5), [1, 0, 0, 1, 0, 0, 0, 0, 0, 0]]).astype(float)
    den = np.concatenate([np.full(21, 40.0), np.zeros(5), np.ones(10)])
    prior = item_prior("empirical-bayes", "partial", data, num, den)  # all are shown equally often
    level, log_kappa = betas_by_search(first, 40)
    kappa, mean = np.exp(log_kappa), special.expit(level)
    assert prior.a[0] == pytest.approx(kappa * mean, rel=2e-3)
    assert prior.b[0] == pytest.approx(kappa * (1 - mean), rel=2e-3)
    assert prior.own.tolist() == [True, False, True]
    assert prior.strength[1] < prior.strength[0]
    assert prior.a[30] / (prior.a[30] + prior.b[30]) == pytest.approx(0.2, abs=2e-3)


def test_a_group_without_members_has_a_uniform_beta():
    a, b = fit_betas(np.array([1.0]), np.array([3.0]), np.array([1]), 3).of(
        np.arange(3), np.zeros((3, 0))
    )
    assert a[[0, 2]].tolist() == b[[0, 2]].tolist() == [1.0, 1.0]


def test_exposure_is_the_logit_of_the_share_of_serps_in_three_parts():
    x = np.array([-9.0, -4.0, -1.5, 0.0, 3.0])
    assert BENDS == (-4.0, 0.0)
    parts = Exposure.parts(x)
    assert parts.sum(axis=1) == pytest.approx(x + BENDS[0] + BENDS[1])
    assert parts.tolist()[0] == [-9.0, -4.0, 0.0]
    assert parts.tolist()[4] == [-4.0, 0.0, 3.0]


def test_rarely_shown_items_of_a_good_ranker_are_believed_to_be_worse():
    """Without exposure in the prior an unseen item had the mean of all that were shown."""
    rng = np.random.default_rng(3)
    L, n, K = 60, 600, 6
    w = np.sort(rng.beta(2, 5, L))[::-1]
    A = np.argsort(-(2.5 * special.logit(w) + rng.gumbel(size=(n, L))), axis=1)[:, :K]
    clicks = rng.random((n, K)) < w[A]
    data = patterns_of(statistics_from(A, clicks))
    prior = item_prior("empirical-bayes", "partial", data, data.item_clicks, data.impressions)
    rare = data.impressions <= 5
    assert rare.sum() >= 5
    true = w[data.item_ids]
    believed = prior.a / (prior.a + prior.b)
    assert believed[rare].mean() == pytest.approx(true[rare].mean(), abs=0.03)
    assert prior.mean[0] < believed[rare].mean() < believed.mean()
    assert believed.mean() > 2 * true[rare].mean()
