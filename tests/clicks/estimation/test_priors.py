"""Priors: fitted to the items, and used where nothing was seen."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, special, stats

from logeval.clicks.estimation.beta_binomial import HYPER, digamma, fit_beta, trigamma
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import Patterns, patterns_of
from logeval.clicks.estimation.priors import cautious, evidence, item_prior
from logeval.clicks.models.pbm import SHRUNK
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
        assert (SHRUNK in fit.notes) == (name == "PBM" and scope == "partial")
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
    prior = item_prior("none", data, num, den)
    log_mean = (1 + 2 * len(third)) / (1 + 5 * len(third))
    assert prior.log_mean == pytest.approx(log_mean)
    assert prior.mean == pytest.approx([log_mean, 1.0, 0.4])
    assert not prior.a.any()
    assert not prior.b.any()


def beta_by_search(num, den, hyper):
    """(a, b) with the largest beta-binomial likelihood over (a + b)^hyper."""

    def cost(z):
        a, b = np.exp(z)
        return hyper * np.log(a + b) - stats.betabinom.logpmf(num, den, a, b).sum()

    found = optimize.minimize(cost, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-7})
    return np.exp(found.x)


def test_a_query_has_the_beta_of_its_own_items_if_it_has_ten():
    """Twelve seen items; nine, and five that were not seen; ten that were seen once each."""
    offsets = np.array([0, 12, 26, 36])
    none = np.zeros(0, dtype=np.int64)
    data = Patterns(
        ["x", "y", "z"], none, none.reshape(0, 1), none.reshape(0, 1) > 0, none,  # type: ignore[list-item]
        none * 1.0, np.arange(36), offsets,
    )  # fmt: skip
    first = np.array([2, 31, 9, 1, 14, 22, 5, 3, 17, 8, 27, 11])
    second = np.array([20, 28, 33, 37, 38, 12, 30, 25, 35])
    num = np.concatenate([first, second, np.zeros(5), [1, 0, 0, 1, 0, 0, 0, 0, 0, 0]]).astype(float)
    den = np.concatenate([np.full(21, 40.0), np.zeros(5), np.ones(10)])
    prior = item_prior("empirical-bayes", data, num, den)
    a, b = beta_by_search(first, 40, 0.0)
    assert (prior.a[0], prior.b[0]) == pytest.approx((a, b), rel=1e-3)
    assert prior.caution[0] == pytest.approx(
        beta_by_search(first, 40, HYPER).sum() / (a + b), rel=1e-3
    )
    seen = den > 0
    of_log = beta_by_search(num[seen], den[seen], 0.0)
    assert (prior.log_a, prior.log_b) == pytest.approx(tuple(of_log), rel=1e-3)
    assert (prior.a[1], prior.b[1], prior.caution[1]) == (prior.log_a, prior.log_b, 1.0)
    assert prior.mean[2] == pytest.approx(0.2, abs=1e-3)  # one trial each tells the mean alone


def test_a_group_without_members_has_a_uniform_beta():
    a, b = fit_beta(np.array([1.0]), np.array([3.0]), np.array([1]), 3)
    assert a[[0, 2]].tolist() == b[[0, 2]].tolist() == [1.0, 1.0]


def test_a_cautious_variance_relies_on_a_share_of_the_prior():
    """Of a proportion: what is left out of a + b pseudo-counts is as if it had not been given."""
    x, den, strength, share = np.array([0.3, 0.9]), 50.0, np.array([7.0, 20.0]), np.array([0.25, 0])
    variance = 1.0 / ((den + strength) * x * (1 - x))
    expected = 1.0 / ((den + share * strength) * x * (1 - x))
    assert cautious(x, variance, strength, share) == pytest.approx(expected)
    assert cautious(x, variance, strength, np.ones(2)) == pytest.approx(variance)
    ends = np.array([0.0, np.inf])  # fixed, unknown
    assert np.array_equal(cautious(x, ends, strength, share), ends)
