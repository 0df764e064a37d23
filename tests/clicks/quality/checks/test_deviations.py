"""Deviations of the log from simulations, and p-values."""

from __future__ import annotations

import numpy as np
import pytest

from logeval.clicks.quality.deviations import (
    CLICKED,
    FALSE_ALARMS,
    FAMILIES,
    SERPS,
    Family,
    Layout,
    deviations,
)

N = 99


def feature_rows(K=3, seed=0):
    """N + 1 rows of counts of 1000 SERPs with independent clicks at each rank."""
    rng = np.random.default_rng(seed)
    layout = Layout(K)
    rows = np.zeros((N + 1, layout.size))
    shown, rank = layout.at[:2]
    rows[:, SERPS] = rows[:, shown : shown + K].T[0] = 1000
    rows[:, shown : shown + K] = 1000
    rows[:, rank : rank + K] = rng.binomial(1000, [0.3, 0.2, 0.1], (N + 1, K))
    rows[:, CLICKED] = 400
    return layout, rows, rank


def judged(layout, rows):
    parts = layout.components
    results = np.full(len(parts.check), np.nan)
    return deviations(rows, parts, results)


def test_a_row_like_the_others_has_a_p_value_like_the_others():
    layout, rows, _ = feature_rows()
    ranks = []
    for i in range(N + 1):  # each row in turn is the log
        found = judged(layout, np.roll(rows, -i, axis=0))
        family = Family.of([found], N + 1)
        ranks.append(family.p_values(found, "ctr-by-rank")[0])
    # whichever row it is, at most one in a hundred has p = 0.01, two p <= 0.02, ...; ties raise p
    at_most = np.arange(1, N + 2) / (N + 1)
    assert (np.sort(ranks) >= at_most - 1e-12).all()
    assert np.abs(np.sort(ranks) - at_most).mean() < 0.02


def test_the_corrected_p_value_is_never_below_that_of_the_check_alone():
    layout, rows, _ = feature_rows(seed=1)
    found = judged(layout, rows)
    family = Family.of([found, judged(layout, feature_rows(seed=2)[1])], N + 1)
    alone, together = family.p_values(found, "ctr-by-rank")
    assert alone <= together
    assert family.p_values(found, "distance") == (1.0, 1.0)  # nothing was clicked in pairs


def test_a_log_that_is_off_is_faulted_and_named():
    layout, rows, rank = feature_rows(seed=3)
    rows[0, rank + 1 : rank + 3] += 120
    found = judged(layout, rows)
    family = Family.of([found], N + 1)
    assert family.p_values(found, "ctr-by-rank") == (1 / (N + 1), FAMILIES / (N + 1))
    assert FAMILIES / (N + 1) <= FALSE_ALARMS
    off = np.flatnonzero(np.abs(found.z[0]) > family.critical)
    assert {int(found.parts.num[j]) for j in off} >= {rank + 1, rank + 2}
    assert found.error("ctr-by-rank") == pytest.approx(
        np.abs(rows[0, rank : rank + 3] - rows[1:, rank : rank + 3].mean(axis=0)).sum() / 3000
    )


def test_what_a_model_rules_out_is_judged():
    layout, rows, rank = feature_rows(seed=4)
    rows[1:, rank + 2] = 0
    rows[0, rank + 2] = 50
    found = judged(layout, rows)
    family = Family.of([found], N + 1)
    assert family.p_values(found, "ctr-by-rank")[1] <= FALSE_ALARMS
    assert found.high[list(found.parts.num).index(rank + 2)] == 0


def test_ratios_of_random_counts_do_not_deviate_with_their_denominator():
    layout, rows, _ = feature_rows(seed=5)
    first = int(layout.at[2])
    rows[:, CLICKED] = np.random.default_rng(0).integers(300, 500, N + 1)
    rows[:, first] = rows[:, CLICKED] / 2
    rows[0, first], rows[0, CLICKED] = 450, 900  # many more clicks, the same share at rank 1
    found = judged(layout, rows)
    j = list(found.parts.num).index(first)
    assert found.z[0, j] == pytest.approx(0)
    assert found.observed[j] == found.expected[j] == pytest.approx(0.5)
