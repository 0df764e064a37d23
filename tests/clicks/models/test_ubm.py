"""Examination in the UBM: what sets its scale, and what cannot happen."""

from __future__ import annotations

import numpy as np
import pytest

from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.models.registry import MODELS
from tests.clicks.examples import random_model, statistics_of


def test_the_first_examination_sets_the_scale_and_no_click_comes_from_below(data):
    fit = MODELS["UBM"].fit(data, Options("em", "per-query"))
    e = fit.estimates["e"]
    for end in (e.low, e.high):  # taken as known
        assert end[:, 0, 0] == pytest.approx(e.value[:, 0, 0], abs=1e-9)
    k, r = np.triu_indices(data.K, 1, data.K + 1)
    assert not e.value[:, k, r].any()
    k, r = np.tril_indices(data.K, 0, data.K + 1)
    assert (e.value[:, k, r] > 0).all()
    assert (e.low < e.high)[:, k, r][:, 1:].all()


def ubm_log(first, seed=3):
    """Queries of UBM users who examine the first result with that probability."""
    rng = np.random.default_rng(seed)
    truths = [random_model("UBM", rng, L=12, K=4, low=0.2, high=0.7) for _ in range(6)]
    for truth in truths:
        truth.e[0, 0] = first
    return truths, patterns_of(statistics_of(truths, 3000, rng, spread=1.5))


@pytest.mark.parametrize("scope", ["partial", "per-query"])
def test_attractions_are_on_the_scale_on_which_the_first_result_is_examined_always(scope):
    """Intervals held in .3 of cases on the scale that the first fit happened to leave."""
    truths, data = ubm_log(1.0)
    fit = MODELS["UBM"].fit(data, Options("em", scope))
    assert (fit.estimates["e"].value[:, 0, 0] == 1.0).all()
    x, often = fit.estimates["w"], data.impressions > 1000
    true = np.concatenate(
        [
            truths[query.query_id].w[
                np.searchsorted(
                    truths[query.query_id].items,
                    data.item_ids[data.offsets[q] : data.offsets[q + 1]],
                )
            ]
            for q, query in enumerate(data.queries)
        ]
    )
    assert often.sum() > 30
    assert ((x.low <= true) & (true <= x.high))[often].mean() > 0.85


def test_the_scale_stays_where_others_are_examined_more_than_the_first_and_for_pyclick():
    _, data = ubm_log(0.3)
    e = MODELS["UBM"].fit(data, Options("em")).estimates["e"].value
    assert (e[:, 0, 0] < 0.8).all()  # 1 would cap the others
    _, data = ubm_log(1.0)
    e = MODELS["UBM"].fit(data, Options("em", "per-query", "pyclick")).estimates["e"].value
    assert (e[:, 0, 0] < 1.0).all()
