"""The value check: held-out clicks regressed on what a model predicts for whole lists."""

from __future__ import annotations

import numpy as np
import pytest

from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.fitting import fit_one
from logeval.clicks.models.registry import MODELS
from logeval.clicks.quality import value
from logeval.clicks.quality.value import LEVELS, Slope, cross_fitted, moments, regression, slopes
from tests.clicks.examples import random_model, statistics_of


@pytest.fixture(scope="module")
def log():
    """1,000 searches each of two queries, users of PBMs."""
    rng = np.random.default_rng(3)
    models = [random_model("PBM", rng, L=9, K=5, low=0.1, high=0.8) for _ in range(2)]
    return patterns_of(statistics_of(models, 1000, rng))


def fit(name):
    options = Options(MODELS[name].method(None), draws=0, intervals=False)
    return lambda data: fit_one(name, data, options)


def test_a_slope_is_that_of_least_squares_over_single_searches(log):
    """Search by search, with centring by hand."""
    model = fit("PBM")(log)
    found = slopes(model, log)
    top = no = 0.0
    for q, query in enumerate(log.queries):
        users = model.of(query)
        rows = np.repeat(np.flatnonzero(log.query == q), log.count[log.query == q].astype(int))
        x = np.array([users.click_probs(log.item_ids[log.items[r]]).sum() for r in rows])
        y = log.clicks[rows].sum(axis=1)
        top, no = top + np.cov(x, y)[0, 1] * (len(x) - 1), no + x.var() * len(x)
    assert found[2].slope == pytest.approx(top / no)
    assert [one.level for one in found] == list(LEVELS)
    assert all(one.low < one.slope < one.high for one in found)
    distinct = {(q, tuple(items)) for q, items in zip(log.query, log.items.tolist(), strict=True)}
    assert {(one.lists, one.queries) for one in found} == {(len(distinct), 2)}


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_model_whose_differences_are_too_large_has_a_slope_below_one(log, factor):
    model = fit("PBM")(log)
    found = moments(model, log)[2]
    b, low, high = regression(found)
    k = factor  # predictions k times as far from their mean
    scaled = regression(found * [k**2, k, k**2, k**3, k**4])
    assert scaled == pytest.approx((b / k, low / k, high / k))


def test_the_right_model_passes_and_one_that_ignores_items_does_not(log):
    assert all(one.passes for one in cross_fitted(fit("PBM"), log))
    by_rank = {one.level: one for one in cross_fitted(fit("RCTR"), log)}
    assert by_rank["list"].passes is None
    assert np.isnan(by_rank["list"].slope)
    assert by_rank["list"].queries == 0
    assert by_rank["result"].passes  # ranks are told apart


def test_queries_that_differ_widen_the_interval():
    rng, n = np.random.default_rng(0), 400

    def sums_of(slope):
        x = rng.normal(size=(n, 1))
        return value.sums(x, slope * x + rng.normal(size=(n, 1)), np.ones(n))

    alike = regression(np.array([sums_of(1.0) for _ in range(8)]))
    differ = regression(np.array([sums_of(s) for s in (0, 2, 0.2, 1.8, 0.5, 1.5, 1, 1)]))
    assert alike[2] - alike[0] < 0.06
    assert differ[2] - differ[0] > 0.3


def test_the_interval_holds_the_slope_of_independent_searches_19_times_in_20():
    """1,000 logs of 5 queries of very unequal size, whose noise grows with x."""
    rng, held = np.random.default_rng(1), 0
    for _ in range(1000):
        parts = []
        for n in (300, 100, 50, 30, 20):
            x = rng.gamma(1.0, size=(n, 1))
            y = 0.7 * x + (0.3 + x) * rng.normal(size=(n, 1))
            parts.append(value.sums(x, y, np.ones(n)))
        _, low, high = regression(np.array(parts))
        held += low <= 0.7 <= high
    assert 0.91 < held / 1000 < 0.97


def test_errors_of_the_model_count_by_the_searches_it_was_fitted_to(log):
    """Compared with as many searches as it was fitted to: root of 2 times as wide."""
    model = fit("PBM")(log)
    b, _, high = regression(moments(model, log)[2])
    found = slopes(model, log)[2]
    assert (found.slope, found.high - b) == pytest.approx((b, (high - b) * np.sqrt(2)))


@pytest.mark.parametrize(
    ("low", "high", "passes"),
    [
        (0.8, 1.1, True),
        (0.3, 0.9, False),
        (1.1, 1.3, False),
        (0.4, 1.5, None),
        (np.nan, np.nan, None),
    ],
)
def test_what_passes(low, high, passes):
    assert Slope("list", 1.0, low, high, 10, 2).passes is passes
