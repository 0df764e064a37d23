"""The PBM: two estimators of one likelihood, and its free scale."""

from __future__ import annotations

import pytest

from logeval.clicks.estimation.estimates import Options
from logeval.clicks.models.registry import MODELS


@pytest.mark.parametrize("smoothing", ["empirical-bayes", "pyclick"])
@pytest.mark.parametrize("scope", ["per-query", "pooled"])
def test_em_and_mle_of_the_pbm_end_at_the_same_likelihood(data, scope, smoothing):
    em = MODELS["PBM"].fit(data, Options("em", scope, smoothing, tolerance=1e-12))
    mle = MODELS["PBM"].fit(data, Options("mle", scope, smoothing))
    assert mle.trace[-1] == pytest.approx(em.trace[-1], rel=1e-6)


def test_the_pbm_is_scaled_to_a_largest_examination_of_one(data):
    fit = MODELS["PBM"].fit(data, Options("em"))
    assert fit.estimates["e"].value.max(axis=1) == pytest.approx(1.0)
    assert fit.estimates["w"].value.max() <= 1.0
