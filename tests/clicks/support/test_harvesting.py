"""Examination from swaps: by hand, an independent solver, exact slopes, intervals that hold."""

import numpy as np
import pytest
from scipy.optimize import minimize

from benchmarks.harvesting import log_of
from logeval.clicks.estimation.browsing import fold
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.fitting import fit_one
from logeval.clicks.quality.predictive import check_patterns, sample_of
from logeval.clicks.support import graph
from logeval.clicks.support.graph import METHODS, harvest, swap_weights
from logeval.synthetic.world import EXAMINATION
from tests.clicks.examples import table_of


@pytest.fixture(scope="module")
def data():
    return log_of(1500, False, np.random.default_rng(0))


def cells_of(data):
    return fold(data, lambda block: block.shown.position, data.K, 1, np.zeros(data.Q, np.int64))


def test_two_ranks_by_hand():
    """Item 1: 20 of 40 at rank 1, 5 of 20 at rank 2; item 2: 4 of 20, and 3 of 40."""
    rows = [(0, [1, 2], bits, n) for bits, n in ((0, 18), (1, 19), (2, 2), (3, 1))]
    rows += [(0, [2, 1], bits, n) for bits, n in ((0, 12), (1, 3), (2, 4), (3, 1))]
    found = harvest(patterns_of(table_of(rows))).set_index(["method", "rank"])
    upper = 20 * 20 / 60 + 4 * 40 / 60
    lower = 5 * 40 / 60 + 3 * 20 / 60
    assert np.isnan(found.loc[("pivot", 2), "examination"])  # fewer than ten clicks
    many = [(q, items, bits, 10 * n) for q, items, bits, n in rows]
    found = harvest(patterns_of(table_of(many))).set_index(["method", "rank"])
    for method in ("pivot", "chain"):
        assert found.loc[(method, 2), "examination"] == pytest.approx(lower / upper)
    assert (found.xs(1, level="rank")["examination"] == 1.0).all()


def test_all_pairs_maximise_the_likelihood_of_where_an_item_was_clicked(data):
    """Given its clicks, an item is clicked at rank k with probability ~ n(i, k) e(k)."""
    cells = cells_of(data)
    n, c = np.zeros((data.I, data.K)), np.zeros((data.I, data.K))
    n[cells.item, cells.cell], c[cells.item, cells.cell] = cells.impressions, cells.clicks

    def loss(theta):
        e = np.exp(np.append(0.0, theta))
        return -(c @ np.log(e)).sum() + (c.sum(1) * np.log(n @ e)).sum()

    best = minimize(loss, np.zeros(data.K - 1), method="BFGS", options={"gtol": 1e-6})
    found = graph._all_pairs(cells).log_e
    assert found[1:] == pytest.approx(best.x, abs=1e-4)


@pytest.mark.parametrize("method", ["_all_pairs", "_chain", "_pivot"])
def test_slopes_are_derivatives(data, method):
    cells = cells_of(data)
    found = getattr(graph, method)(cells)
    rng = np.random.default_rng(1)
    for row in rng.choice(np.flatnonzero(cells.clicks > 3), 5, replace=False):
        step = np.zeros(len(cells.clicks))
        step[row] = 1e-4
        up = getattr(graph, method)(cells._replace(clicks=cells.clicks + step)).log_e
        down = getattr(graph, method)(cells._replace(clicks=cells.clicks - step)).log_e
        assert (up - down) / 2e-4 == pytest.approx(found.slopes[row], abs=1e-5)


@pytest.mark.parametrize("differ", [False, True])
def test_intervals_hold_the_truth(differ):
    """40 logs; benchmarks/harvesting.py has more."""
    held = {name: [] for name in METHODS}
    for seed in range(40):
        table = harvest(log_of(1000, differ, np.random.default_rng([7, seed])))
        table = table[table["rank"] > 1].dropna()
        truth = EXAMINATION[table["rank"].to_numpy() - 1]
        inside = table["low"].le(truth) & table["high"].ge(truth)
        for name in METHODS:
            held[name].append(inside[table["method"] == name].mean())
    for each in held.values():
        error = np.std(each) / np.sqrt(len(each))
        assert np.mean(each) > 0.95 - 3.5 * error - 0.01


def test_ranks_that_nothing_ties_have_no_value():
    rows = [(0, [1, 2, 3], bits, 20) for bits in range(8)]
    rows += [(0, [2, 1, 3], bits, 20) for bits in range(8)]
    found = harvest(patterns_of(table_of(rows))).set_index(["method", "rank"])["examination"]
    for method in METHODS:
        assert np.isfinite(found[(method, 2)])
        assert np.isnan(found[(method, 3)])


def test_weights_of_the_check_are_those_of_the_chain(data):
    weights = swap_weights(data)
    clicks = data.clicks * data.count[:, None]
    upper = np.einsum("pk,pk->k", clicks, weights[:, :, 0])[:-1]
    lower = np.einsum("pk,pk->k", clicks, weights[:, :, 1])[1:]
    chain = graph._chain(cells_of(data)).log_e
    assert np.log(lower / upper) == pytest.approx(np.diff(chain))


def test_the_variance_is_that_of_a_loop_over_serps():
    """With any slopes: of single clicks, and of what those of a SERP have in common."""
    rng = np.random.default_rng(2)
    data = log_of(200, True, rng)
    cells = cells_of(data)
    found = graph.Linear(np.log(EXAMINATION), rng.normal(size=(len(cells.item), data.K)))
    row = {pair: r for r, pair in enumerate(zip(cells.item, cells.cell, strict=True))}
    w = np.zeros(data.I)
    for i in range(data.I):
        mine = cells.item == i
        shown = (cells.impressions * EXAMINATION[cells.cell])[mine].sum()
        w[i] = cells.clicks[mine].sum() / shown
    own, common = np.zeros(data.K), np.zeros(data.K)
    for n, c, g in zip(cells.impressions, cells.clicks, found.slopes, strict=True):
        own += g**2 * (c * (n - c) / (n - 1) if n > 1 else c)
    for items, clicks, count in zip(data.items, data.clicks, data.count, strict=True):
        left = clicks - w[items] * EXAMINATION
        g = np.array([found.slopes[row[i, k]] for k, i in enumerate(items)])
        for a in range(data.K):
            for b in range(data.K):
                common += (a != b) * count * g[a] * g[b] * left[a] * left[b]
    assert (common > 0).any()
    assert graph._variance(found, cells, data) == pytest.approx(own + np.maximum(common, 0))


def test_the_check_compares_the_ratios_of_the_chain_with_those_of_the_model(data):
    fitted = fit_one("PBM", data, Options("em", draws=0))
    sample = sample_of(fitted.queries, data, 10**9, 0, fitted_to=True)
    curves = check_patterns([fitted], sample, 80, quiet=True).curves
    rows = curves[(curves["check"] == "swaps") & curves["query"].isna()]
    ratio = np.exp(np.diff(graph._chain(cells_of(data)).log_e))
    assert rows["observed"].to_numpy() == pytest.approx(1 / (1 + ratio))
    # what PBM users do on these lists, exactly
    p = np.zeros(data.items.shape)
    for q, query in enumerate(data.queries):
        model, mine = fitted.of(query), data.query == q
        p[mine] = model.click_probs(data.item_ids[data.items[mine]])
    weights = swap_weights(data) * (p * data.count[:, None])[..., None]
    upper, lower = weights[:, :-1, 0].sum(axis=0), weights[:, 1:, 1].sum(axis=0)
    clicks = data.clicks.sum() / data.K
    error = np.sqrt(0.25 / (clicks / 10) / 80)  # of 80 simulations; ranks have a tenth at least
    assert rows["expected"].to_numpy() == pytest.approx(upper / (upper + lower), abs=4 * error)
