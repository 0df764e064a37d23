"""The joint posterior: against slow samplers, exact formulas, and what draws must agree with."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from benchmarks.intervals import clicks_of
from logeval.clicks.estimation import posterior as under_test
from logeval.clicks.estimation.beta import Betas, BetaWalk, log_rising
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.estimation.posterior import interval
from logeval.clicks.fitting import fit_one
from logeval.clicks.models.dcm import DCM
from logeval.clicks.models.registry import MODELS
from tests.clicks.examples import random_model, statistics_of

LATENT = ["DCM", "SDBN", "DBN", "CCM", "PBM", "UBM"]


def metropolis(name, data, fixed, steps, rng):
    """Draws of all parameters of one query under flat priors, by a random walk of one at a time.

    Independent of EM and of the sampler under test: it uses the model's own likelihood only.
    """
    shapes = {"item": (data.I,), "position": (data.K,), "transition": (data.K, data.K + 1)}
    x = {p.field: np.full(shapes.get(p.kind, ()), 0.5) for p in MODELS[name].PARAMETERS}
    for field, (at, value) in fixed.items():
        x[field][at] = value
    free = [
        (field, at)
        for field, v in x.items()
        for at in np.ndindex(v.shape)
        if field not in fixed or not fixed[field][0][at]
    ]

    def likelihood():
        model = MODELS[name](items=np.arange(data.I), K=data.K, **x)
        return float(data.count @ model.log_likelihood(data.items, data.clicks))

    now, out = likelihood(), {field: [] for field in x}
    for step in range(steps):
        for field, at in free:
            before = float(x[field][at])
            x[field][at] = before + rng.normal(scale=0.25)
            there = likelihood() if 0.0 < x[field][at] < 1.0 else -np.inf
            if np.log(rng.random()) < there - now:
                now = there
            else:
                x[field][at] = before
        if step >= steps // 10:
            for field, v in x.items():
                out[field].append(np.array(v))
    return {field: np.array(v) for field, v in out.items()}


@pytest.mark.parametrize("name", LATENT)
def test_draws_are_of_the_posterior_that_a_slow_sampler_finds(name, monkeypatch):
    rng = np.random.default_rng(5)
    truth = random_model(name, rng, L=3, K=2, low=0.3, high=0.8)
    data = patterns_of(statistics_of([truth], 40, rng, spread=4.0))
    monkeypatch.setattr(under_test, "SWEEPS", 3000)
    options = Options(MODELS[name].methods[0], "per-query", "pyclick", draws=3000)
    options = Options(**{**vars(options), "chosen": {"last_termination": "raw"}})
    fit = MODELS[name].fit(data, options)
    found = {f: e.draws.reshape(3000, -1) for f, e in fit.estimates.items()}
    fixed = {}
    if name in ("PBM", "UBM"):  # the scale is settled by the fit, and what cannot be is 0
        e = fit.estimates["e"].value[0]
        fixed = {"e": (found["e"].std(axis=0).reshape(e.shape) < 1e-9, None)}
        fixed["e"] = (fixed["e"][0], e[fixed["e"][0]])
    slow = metropolis(name, data, fixed, 4000, rng)
    for field, values in slow.items():
        slow_draws = values.reshape(len(values), -1)
        assert found[field].mean(axis=0) == pytest.approx(slow_draws.mean(axis=0), abs=0.03)
        assert found[field].std(axis=0) == pytest.approx(slow_draws.std(axis=0), abs=0.025)


def test_what_is_counted_has_its_beta():
    """Without latent events and with a known prior the posterior is Beta(clicks + 1, skips + 1)."""
    rng = np.random.default_rng(2)
    data = patterns_of(statistics_of([random_model("DCTR", rng, L=6, K=3)], 200, rng, spread=3.0))
    options = Options("counting", "per-query", "pyclick", draws=200)
    found = MODELS["DCTR"].fit(data, options).estimates["ctr"]
    exact = stats.beta(data.item_clicks + 1, data.impressions - data.item_clicks + 1)
    assert found.draws.mean(axis=0) == pytest.approx(exact.mean(), abs=5 * exact.std().max() / 14)
    inner = data.item_clicks >= 3
    assert found.low[inner] == pytest.approx(exact.ppf(0.025)[inner], abs=1e-3)
    assert found.high[inner] == pytest.approx(exact.ppf(0.975)[inner], abs=1e-3)


def test_an_interval_is_that_of_the_beta_and_begins_at_zero_where_its_density_does():
    a, b = np.array([4.0, 0.5, 20.0, 3.5]), np.array([9.0, 300.0, 0.8, 50.0])
    beta = stats.beta(a, b)
    found = interval(a / (a + b), beta.mean(), beta.var() + beta.mean() ** 2, a + b, np.zeros(0))
    below = np.array([0.025, 0.0, 0.05, 0.0125])
    assert found.low == pytest.approx(beta.ppf(below), rel=1e-6)
    assert found.high == pytest.approx(beta.ppf(below + 0.95), rel=1e-6)
    known = interval(*(np.array([x]) for x in (0.3, 0.3, 0.09, 5.0)), np.zeros(0))
    assert known.low == known.high == 0.3


@pytest.mark.parametrize("name", MODELS)
def test_draws_expect_the_clicks_that_the_log_has(name):
    """Query by query, within chance: the lists of the log under the draws."""
    rng = np.random.default_rng(6)
    truths = [random_model(name, rng, L=9, K=4, low=0.1, high=0.8) for _ in range(6)]
    data = patterns_of(statistics_of(truths, 300, rng, spread=1.5))
    fitted = fit_one(name, data, Options(MODELS[name].methods[0]))
    for q, query in enumerate(data.queries):
        rows = data.query == q
        A, count = data.items[rows] - data.offsets[q], data.count[rows]
        clicks = count @ data.clicks[rows].sum(axis=1)
        expected = [
            count @ fitted.drawn(d).of(query).click_probs_of_rows(A).sum(axis=1)
            for d in range(1, 21)
        ]
        spread = np.sqrt(count @ data.clicks[rows].sum(axis=1) ** 2)  # of the sum over SERPs
        if name == "CM":  # takes the first click only, as all that there is
            clicks = count @ data.clicks[rows].any(axis=1)
        assert np.mean(expected) == pytest.approx(clicks, abs=3.5 * spread)


def test_the_mean_of_the_draws_is_the_value_where_the_log_is_large():
    rng = np.random.default_rng(7)
    for name in MODELS:
        truths = [random_model(name, rng, L=6, K=4, low=0.2, high=0.8) for _ in range(3)]
        data = patterns_of(statistics_of(truths, 4000, rng, spread=4.0))
        fit = MODELS[name].fit(data, Options(MODELS[name].methods[0], draws=60))
        for field, x in fit.estimates.items():
            width = np.nan_to_num(x.high - x.low, nan=1.0)
            off = np.abs(x.draws.mean(axis=0) - x.value) / np.maximum(width / 4, 2e-3)
            assert np.median(off) < 0.5, (name, field)


@pytest.mark.parametrize("name", LATENT)
def test_the_estimate_is_the_mean_of_the_posterior_that_gives_its_interval(name):
    """EM's was at the very end of intervals stretched to hold it, where the log says little."""
    rng = np.random.default_rng(8)
    truths = [random_model(name, rng, L=15, K=5, low=0.05, high=0.7) for _ in range(6)]
    data = patterns_of(statistics_of(truths, 150, rng, spread=1.5))
    fit = MODELS[name].fit(data, Options(MODELS[name].methods[0], draws=200))
    for field, x in fit.estimates.items():
        wide = np.isfinite(x.low) & (x.high - x.low > 1e-9)
        sd = x.draws.std(axis=0)
        assert ((x.low < x.value) & (x.value < x.high))[wide].all(), field
        off = (np.abs(x.draws.mean(axis=0) - x.value) / np.maximum(sd, 1e-9))[wide]
        assert off.max() < 0.5, field  # chance, of 200 dependent draws


@pytest.mark.parametrize("seed", [31, 32])
def test_the_estimate_is_closer_to_the_truth_than_that_of_em(seed):
    """PBM, a good ranker, many rare items: the mean squared error of examination."""
    rng = np.random.default_rng(seed)
    truths = [
        MODELS["PBM"](
            items=np.arange(40), K=6, w=np.append(rng.beta(3, 5, 12), rng.beta(1, 12, 28)),
            e=np.sort(np.append(1.0, rng.uniform(0.2, 0.9, 5)))[::-1],
        )
        for _ in range(8)
    ]  # fmt: skip
    data = clicks_of(truths, 800, rng, 6, quality=1.0)
    true = np.stack([truths[query.query_id].e for query in data.queries])
    mean, mode = (
        MODELS["PBM"].fit(data, Options("em", intervals=intervals)).estimates["e"].value
        for intervals in (True, False)
    )
    assert np.mean((mean - true) ** 2) < np.mean((mode - true) ** 2) < 0.002


def test_what_was_never_seen_is_drawn_from_the_prior_over_items():
    """Satisfaction of items that were never clicked; their prior is that of those that were."""
    rng = np.random.default_rng(9)
    truth = MODELS["SDBN"](
        items=np.arange(100, 130), K=5, w=np.append(rng.uniform(0.2, 0.6, 20), np.zeros(10)),
        s=rng.beta(8, 4, 30),
    )  # fmt: skip
    data = patterns_of(statistics_of([truth], 3000, rng, spread=5.0))
    fit = MODELS["SDBN"].fit(data, Options("em", draws=200))
    never = data.item_clicks == 0
    assert never.sum() == 10
    draws = fit.estimates["s"].draws
    assert draws[:, never].mean() == pytest.approx(draws[:, ~never].mean(), abs=0.08)
    assert draws[:, never].std() == pytest.approx(stats.beta(8, 4).std(), abs=0.06)
    flat = MODELS["SDBN"].fit(data, Options("em", "per-query", "pyclick", draws=200))
    assert flat.estimates["s"].draws[:, never].mean() == pytest.approx(0.5, abs=0.03)
    assert flat.estimates["s"].draws[:, never].std() == pytest.approx(np.sqrt(1 / 12), abs=0.02)


@pytest.mark.parametrize("scope", ["partial", "per-query"])
@pytest.mark.parametrize("smoothing", ["empirical-bayes", "none"])
def test_a_termination_near_zero_has_an_interval_that_says_so(scope, smoothing):
    """Hundreds of clicks after which users went on; the interval was (0, 1) once."""
    if smoothing == "none" and scope == "partial":
        return
    rng = np.random.default_rng(10)
    v = np.array([0.5, 0.3, 0.1, 0.003, 0.001, 0.001])
    truths = [DCM(items=np.arange(100, 120), K=6, w=rng.beta(2, 5, 20), v=v) for _ in range(8)]
    data = patterns_of(statistics_of(truths, 1500, rng))
    x = MODELS["DCM"].fit(data, Options("em", scope, smoothing)).estimates["v"]
    width = (x.high - x.low)[:, 3:5]
    assert width.max() < (0.25 if scope == "partial" else 0.35)  # .09 to .14 by chains 20 as long
    held = (x.low <= v) & (v <= x.high)
    assert held[:, :5].mean() >= 0.85


def test_the_last_termination_is_not_identified_and_has_no_interval(data):
    x = MODELS["DCM"].fit(data, Options("em")).estimates["v"]
    last = data.positions - 1
    rows = np.arange(data.Q)
    assert np.isnan(x.low[rows, last]).all()
    assert np.isnan(x.high[rows, last]).all()
    assert np.isfinite(x.low[rows, last - 1]).all()
    assert np.array_equal(x.draws[:, rows, last], x.draws[:, rows, last - 1])


def test_draws_hold_what_parameters_have_to_do_with_each_other():
    """In a PBM the products w e are known far better than the factors."""
    rng = np.random.default_rng(11)
    truth = MODELS["PBM"](
        items=np.arange(100, 112), K=4, w=rng.uniform(0.1, 0.5, 12),
        e=np.array([1.0, 0.6, 0.4, 0.3]),
    )  # fmt: skip
    data = patterns_of(statistics_of([truth], 400, rng, spread=0.1))
    fit = MODELS["PBM"].fit(data, Options("em", "per-query", "pyclick", draws=200))
    w, e = fit.estimates["w"].draws, fit.estimates["e"].draws[:, 0]
    cells = np.zeros((12, 4))
    np.add.at(cells, (data.items.ravel(), np.tile(np.arange(4), data.P)), np.repeat(data.count, 4))
    item, place = np.unravel_index(cells[:, 1:].argmax(), (12, 3))
    product = w[:, item] * e[:, place + 1]
    assert np.corrcoef(np.log(w[:, item]), np.log(e[:, place + 1]))[0, 1] < -0.3
    assert product.std() / product.mean() < 0.9 * w[:, item].std() / w[:, item].mean()


def test_the_walk_of_a_beta_finds_its_posterior():
    """Against the same density summed over a grid of mean and strength."""
    rng = np.random.default_rng(12)
    den = np.array([3.0, 8.0, 20.0, 5.0, 11.0, 30.0])
    num = np.array([1.0, 2.0, 9.0, 0.0, 4.0, 6.0])
    start = Betas(np.zeros(1), np.full(1, 2.0), np.zeros((1, 0)))
    walk = BetaWalk(start, np.array([0, 6]), np.ones(1, bool), np.zeros((6, 0)))
    found = []
    for step in range(6000):
        walk.move(num, den, rng, step < 1000)
        if step >= 1000:
            a, b = walk.pair
            found.append([a[0] / (a[0] + b[0]), np.log(a[0] + b[0])])
    level, log_kappa = np.meshgrid(
        np.linspace(-6, 4, 400), np.linspace(np.log(0.05), np.log(1e4), 400)
    )
    mean, kappa = special.expit(level), np.exp(log_kappa)
    a, b = (kappa * mean)[..., None], (kappa * (1 - mean))[..., None]
    log_p = stats.betabinom.logpmf(num, den, a, b).sum(axis=-1)
    log_p += np.log(mean * (1 - mean)) - 0.5 * log_kappa
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    exact = [(p * mean).sum(), (p * log_kappa).sum()]
    assert np.mean(found, axis=0) == pytest.approx(exact, abs=0.12)
    assert np.mean(found, axis=0)[0] == pytest.approx(exact[0], abs=0.012)


def test_a_walk_does_not_start_at_the_ends():
    """Where counts say little, empirical Bayes ends there: a DBN took 100 sweeps to come back."""
    at_the_end = Betas(np.full(2, -12.0), np.full(2, 1e4), np.zeros((2, 0)))
    walk = BetaWalk(at_the_end, np.arange(3), np.array([True, False]), np.zeros((2, 0)))
    a, b = walk.pair
    assert a[0] / (a[0] + b[0]) == pytest.approx(special.expit(-3.0))
    assert a[0] + b[0] == pytest.approx(30.0)
    assert a[1] / (a[1] + b[1]) < 1e-5  # what does not wander stays


def test_log_rising_is_a_ratio_of_gamma_functions():
    for a, n in ((0.3, 0.0), (2.5, 1.0), (0.01, 20.0), (7.0, 21.0), (3.0, 900.0)):
        assert log_rising(a, n) == pytest.approx(special.gammaln(a + n) - special.gammaln(a))
