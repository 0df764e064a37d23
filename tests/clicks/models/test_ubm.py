"""Examination in the UBM: what sets its scale, and what cannot happen."""

from __future__ import annotations

import numpy as np
import pytest

from logeval.clicks.estimation.estimates import Options
from logeval.clicks.models.registry import MODELS


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
