"""Satisfaction: nobody's, and the caveat on its intervals where they rest on few clicks."""

from __future__ import annotations

import numpy as np
import pytest

from logeval.clicks.estimation.estimates import ModelEstimate, Options, ParameterEstimate
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.models import dbn
from logeval.clicks.models.registry import MODELS
from tests.clicks.examples import random_model, statistics_of, table_of


@pytest.mark.parametrize("name", ["SDBN", "DBN"])
@pytest.mark.parametrize(("serps", "warned"), [(30, "DBN"), (300, "DBN"), (2000, "")])
def test_few_clicks_per_item_are_said(name, serps, warned):
    """Of the DBN; intervals of the SDBN hold with any number."""
    rng = np.random.default_rng(1)
    model = random_model(name, rng, L=6, K=4, low=0.3, high=0.7)
    fit = MODELS[name].fit(patterns_of(statistics_of([model], serps, rng)), Options("em"))
    assert any("too narrow" in note for note in fit.notes) == (name in warned.split())


@pytest.mark.parametrize(
    ("clicks", "said"),
    [
        ([0, 199, 200, 201], None),  # an item without clicks says nothing
        ([0, 1, 199, 210], "at most 199 clicks"),
        ([0, 1, 1], "at most 1 clicks"),
        ([0, 0], "at most 0 clicks"),
    ],
)
def test_the_caveat_is_of_the_median_of_the_clicked_items(clicks, said):
    x = np.array(clicks, dtype=float)
    fit = ModelEstimate({"s": ParameterEstimate(x, x, x, x)})
    notes = dbn._with_caveat(fit).notes
    assert len(notes) == (said is not None)
    assert said is None or said in notes[0]


@pytest.mark.parametrize("name", ["SDBN", "DBN"])
def test_an_item_after_which_everybody_goes_on_satisfies_nobody(name):
    rows = [
        (0, [1, 2], 0b11, 5), (0, [1, 2], 0b10, 3), (0, [2, 1], 0b01, 4), (0, [2, 1], 0b00, 2)
    ]  # fmt: skip
    data = patterns_of(table_of(rows))
    fit = MODELS[name].fit(data, Options("em", smoothing="none"))
    assert np.isfinite(fit.trace).all()
    s = fit.estimates["s"].value
    assert s[data.item_ids == 1] == 0.0
    assert 0.0 < s[data.item_ids == 2] < 1.0
