"""Fitted models beside true ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from logeval.clicks.collection import FittedModels
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.fitting import fit_one
from logeval.clicks.quality.truth import LOGGED, against_truth
from logeval.errors import LogevalError
from logeval.log.queries import Query
from tests.clicks.examples import random_model, statistics_of


def fitted_and_true(name, method="em"):
    """A fit, and the same fit with other values as the truth."""
    rng = np.random.default_rng(1)
    models = [random_model(name, rng, L=6, K=4, low=0.2, high=0.8) for _ in range(2)]
    data = patterns_of(statistics_of(models, 800, rng))
    fitted = replace(fit_one(name, data, Options(method)), base=data.base)
    return fitted, models


def moved(fitted, **changes):
    estimates = dict(fitted.estimates)
    for field, change in changes.items():
        estimates[field] = replace(estimates[field], value=change(estimates[field].value))
    return replace(fitted, estimates=estimates)


def rows(fitted, true):
    models = FittedModels({fitted.model: fitted})
    return against_truth(models, FittedModels({true.model: true})).set_index(["model", "parameter"])


def test_a_fit_that_is_the_truth_has_no_error():
    fitted, _ = fitted_and_true("DCM")
    found = rows(fitted, fitted)
    for parameter in ("attraction", "termination"):
        assert found.loc[("DCM", parameter), "bias"] == 0
        assert found.loc[("DCM", parameter), "rmse"] == 0
        assert found.loc[("DCM", parameter), "coverage"] == 1
    assert found.loc[("DCM", "termination"), "values"] == 2 * 3  # v of the last is not identified
    assert found.loc[("DCM", "best list"), "regret"] == 0
    assert found.loc[(LOGGED, "best list"), "regret"] > 0


def test_bias_rmse_and_coverage_are_those_of_the_values():
    fitted, _ = fitted_and_true("DCM")
    true = moved(fitted, w=lambda w: np.clip(w - 0.02 * (-1.0) ** np.arange(len(w)) + 0.01, 0, 1))
    found = rows(fitted, true).loc[("DCM", "attraction")]
    estimate, truth = fitted.estimates["w"], true.estimates["w"].value
    assert found["bias"] == pytest.approx((estimate.value - truth).mean())
    assert found["rmse"] == pytest.approx(np.sqrt(((estimate.value - truth) ** 2).mean()))
    inside = (estimate.low <= truth) & (truth <= estimate.high)
    assert found["coverage"] == inside.mean()


def test_the_scale_of_a_pbm_is_not_an_error():
    fitted, _ = fitted_and_true("PBM")
    true = moved(fitted, w=lambda w: w / 0.9, e=lambda e: e * 0.9)
    found = rows(fitted, true)
    assert found.loc[("PBM", "attraction"), "rmse"] == pytest.approx(0, abs=1e-12)
    assert found.loc[("PBM", "examination"), "rmse"] == pytest.approx(0, abs=1e-12)
    assert found.loc[("PBM", "best list"), "regret"] == pytest.approx(0, abs=1e-12)


def test_regret_is_what_the_other_list_earns_less():
    fitted, _ = fitted_and_true("CM", "counting")
    true = moved(fitted, w=lambda w: 1 - w)  # the worst items are the best
    found = rows(fitted, true)
    regret = []
    for query in fitted.queries:
        w = np.sort(true.of(query).w)
        regret.append(np.prod(1 - w[:4]) - np.prod(1 - w[-4:]))
    assert found.loc[("CM", "best list"), "regret"] == pytest.approx(np.mean(regret))


def test_a_truth_of_other_queries_is_refused():
    fitted, _ = fitted_and_true("CM", "counting")
    other = replace(fitted, queries=[Query(7000), Query(7001)])
    with pytest.raises(LogevalError, match="none of the queries"):
        rows(fitted, other)
