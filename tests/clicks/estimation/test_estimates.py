"""Intervals hold the truth as often as they should."""

from __future__ import annotations

import numpy as np
import pytest

from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.models.dcm import DCM
from logeval.clicks.models.registry import MODELS
from tests.clicks.examples import random_model, statistics_of


def inside(fit, data, truths, field):
    """Whether each true value of an item parameter lies in its interval."""
    estimate = fit.estimates[field]
    out = []
    for q, query in enumerate(data.queries):
        span = slice(data.offsets[q], data.offsets[q + 1])
        true = getattr(truths[query.query_id], field)[data.item_ids[span] - 100]
        out.extend((estimate.low[span] <= true) & (true <= estimate.high[span]))
    return np.array(out)


@pytest.mark.parametrize(
    ("name", "method", "fields", "lowest"),
    [
        ("DCTR", "counting", ["ctr"], 0.92),
        ("CM", "counting", ["w"], 0.92),
        ("PBM", "em", ["w"], 0.90),
        ("DCM", "em", ["w"], 0.91),
        ("SDBN", "em", ["w", "s"], 0.85),
        ("CCM", "em", ["w"], 0.90),
    ],
)
def test_intervals_hold_the_truth_as_often_as_they_should(name, method, fields, lowest):
    rng = np.random.default_rng(11)
    truths = []
    for _ in range(6):
        model = random_model(name, rng, L=20, K=6, low=0.3, high=0.8)
        values = {p.field: getattr(model, p.field) for p in model.PARAMETERS}
        values |= {field: rng.beta(2, 5, 20) for field in fields}
        if name == "PBM":
            values["e"] = np.sort(values["e"])[::-1] / values["e"].max()
        truths.append(type(model)(items=model.items, K=6, **values))
    data = patterns_of(statistics_of(truths, 1500, rng))
    fit = MODELS[name].fit(data, Options(method))
    for field in fields:
        covered = inside(fit, data, truths, field).mean()
        assert lowest <= covered <= 0.995, f"{name} {field}: {covered:.3f}"


@pytest.mark.parametrize("name", ["PBM", "DCM"])
def test_without_a_prior_an_item_never_clicked_has_a_narrow_interval(name):
    rng = np.random.default_rng(13)
    w = np.append(rng.beta(2, 5, 11), 0.0)
    truth = DCM(items=np.arange(100, 112), K=5, w=w, v=np.full(5, 0.3))
    data = patterns_of(statistics_of([truth], 1000, rng, spread=10.0))
    estimate = MODELS[name].fit(data, Options("em", smoothing="none")).estimates["w"]
    never = data.item_ids == 111
    assert estimate.value[never] == pytest.approx(0.0, abs=1e-6)
    assert 0.0 < estimate.high[never][0] < 0.05


def test_pooled_queries_are_one_group_and_others_are_their_own(data):
    for scope, groups in (("pooled", [0, 0, 0]), ("partial", [0, 1, 2]), ("per-query", [0, 1, 2])):
        G, group = Options("em", scope).groups(data)
        assert G == len(set(groups))
        assert group.tolist() == groups


def test_a_closed_form_needs_no_iterations(data):
    fit = MODELS["CM"].fit(data, Options("counting"))
    assert (fit.iterations, fit.converged, fit.groups) == (0, 0, 0)
