"""How sure a log is: widths by hand, and beside those of a fit."""

import numpy as np
import pytest

from benchmarks.harvesting import log_of
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.fitting import fit_one
from logeval.clicks.support.support import BELIEF, expected_widths, filled, support_of, width
from tests.clicks.examples import table_of


def test_widths_by_hand():
    """Two items, always in one order: 100 SERPs, 40 clicks on the first, 10 on the second."""
    data = patterns_of(table_of([(0, [1, 2], 0, 50), (0, [1, 2], 1, 40), (0, [1, 2], 2, 10)]))
    (row,) = expected_widths(data, np.array([1.0, 0.5])).itertuples()
    x, mean = np.array([100.0, 50.0]), 50 / 150
    w = (np.array([40.0, 10.0]) + BELIEF * mean) / (x + BELIEF)
    e, spread = np.array([1.0, 0.5]), w * (1 - w)

    def wide(more):
        return 2 * 1.959964 * np.sqrt((e**2 * spread / (more * x + BELIEF)).sum())

    assert row.value == pytest.approx(e @ w)
    assert row.width_value == pytest.approx(wide(1.0))
    assert wide(row.serps_to_halve / 100) == pytest.approx(wide(1.0) / 2, rel=0.01)


def test_ranks_without_a_value_have_that_above():
    assert filled(np.array([1.0, 1.25, np.nan, 0.5])).tolist() == [0.8, 1.0, 1.0, 0.4]
    assert filled(np.full(2, np.nan)).tolist() == [1.0, 1.0]


def test_expected_widths_are_near_those_of_a_fit():
    """Of the best list's value over draws of a PBM: the same to a factor of two in every query."""
    data = log_of(8000, False, np.random.default_rng(11))
    fitted = fit_one("PBM", data, Options("em", draws=60))
    found = support_of(data).table
    for row, query in zip(found.itertuples(), data.queries, strict=True):
        values = [one.of(query).optimum().value for one in fitted.some_draws(60)]
        spread = np.ptp(np.quantile(values, [0.025, 0.975]))
        assert 0.5 < row.width_value / spread < 2.0


def test_the_median_query_says_how_sure_a_log_is():
    data = log_of(3000, False, np.random.default_rng(4))
    table = support_of(data).table
    fact = width(table)
    middle = table.iloc[(table["width_value"] / table["value"]).argsort().iloc[len(table) // 2]]
    assert (fact.about, fact.low) == (middle["query"], middle["width_value"])
    assert fact.threshold == middle["serps_to_halve"]
