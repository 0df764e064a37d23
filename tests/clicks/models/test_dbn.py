"""The caveat on intervals of satisfaction that rest on few clicks."""

from __future__ import annotations

import numpy as np
import pytest

from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.models.registry import MODELS
from tests.clicks.examples import random_model, statistics_of


@pytest.mark.parametrize("name", ["SDBN", "DBN"])
@pytest.mark.parametrize(("serps", "warned"), [(30, "SDBN DBN"), (300, "DBN"), (2000, "")])
def test_few_clicks_per_item_are_said(name, serps, warned):
    """Those of the DBN are too narrow with ten times as many."""
    rng = np.random.default_rng(1)
    model = random_model(name, rng, L=6, K=4, low=0.3, high=0.7)
    fit = MODELS[name].fit(patterns_of(statistics_of([model], serps, rng)), Options("em"))
    assert any("too narrow" in note for note in fit.notes) == (name in warned.split())
