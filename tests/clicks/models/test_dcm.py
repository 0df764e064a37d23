"""Termination of the DCM: biased when counted, not identified at the end of a list."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.models.dcm import DCM
from logeval.clicks.models.registry import MODELS
from tests.clicks.examples import log_likelihood, random_model, statistics_of, table_of

RAW = {"last_termination": "raw"}


@pytest.mark.parametrize("scope", ["per-query", "pooled"])
def test_exact_dcm_em_has_at_least_the_likelihood_of_counting(data, scope):
    counted = log_likelihood("DCM", data, Options("guo", scope, "none"))
    exact = log_likelihood("DCM", data, Options("em", scope, "none"))
    assert exact > counted + 10


def test_counting_takes_the_last_click_for_satisfaction_and_is_biased():
    """What Guo's estimate costs: with weak termination it is far above the truth, EM is not."""
    rng = np.random.default_rng(3)
    model = random_model("DCM", rng, L=20, K=6, low=0.2, high=0.4)
    data = patterns_of(statistics_of([model], 5000, rng))
    by_counting = MODELS["DCM"].fit(data, Options("guo")).estimates["v"]
    by_em = MODELS["DCM"].fit(data, Options("em")).estimates["v"]
    assert (by_counting.low[0, :-1] > model.v[:-1]).all()
    errors = [np.abs(v.value[0, :-1] - model.v[:-1]) for v in (by_em, by_counting)]
    assert (errors[0] < errors[1] / 2).all()


def test_the_last_termination_is_the_previous_one_and_raw_is_kept(data):
    fit = MODELS["DCM"].fit(data, Options("guo"))
    v = fit.estimates["v"]
    assert v.value[:, -1] == pytest.approx(v.value[:, -2])
    raw = MODELS["DCM"].fit(data, Options("guo", chosen=RAW)).estimates["v"].value
    assert v.raw[:, -1] == pytest.approx(raw[:, -1])
    assert raw[:, -1].min() > 0.9
    assert any("whether a click at the last position ended" in note for note in fit.notes)


@pytest.mark.parametrize("method", ["guo", "em"])
@pytest.mark.parametrize("lengths", [(3, 10), (10, 11)])
def test_the_end_of_a_shorter_list_says_nothing_of_termination(method, lengths):
    rng = np.random.default_rng(12)
    v = np.full(max(lengths), 0.3)
    truth = DCM(items=np.arange(100, 114), K=max(lengths), w=rng.beta(2, 5, 14), v=v)
    tables = []
    for K, n in zip(lengths, (4000, 4000) if lengths[0] == 3 else (4000, 1), strict=True):
        cut = DCM(items=truth.items, K=K, w=truth.w, v=v[:K])
        tables.append(statistics_of([cut], n, rng, spread=10.0))
    data = patterns_of(pa.concat_tables(tables))
    fit = MODELS["DCM"].fit(data, Options(method))
    estimate = fit.estimates["v"]
    value = estimate.value[0]
    assert value[2] < 0.6
    assert value.max() < (0.9 if method == "guo" else 0.6)
    assert value[-1] == value[-2]
    plain = MODELS["DCM"].fit(data, Options(method, chosen=RAW)).estimates["v"].value
    replaced = np.isfinite(estimate.raw[0])
    assert replaced[-1]
    assert estimate.raw[0][replaced] == pytest.approx(plain[0][replaced])
    assert value[~replaced] == pytest.approx(plain[0][~replaced])


def test_raw_is_kept_where_termination_was_replaced_and_only_there():
    """Three queries, whose longest lists have four positions, two and one; counts by hand."""
    serps = [
        (0, [1, 2, 3, 4], 0b0011, 5),
        (0, [1, 2, 3, 4], 0b0010, 3),
        (0, [1, 2, 3, 4], 0b1010, 2),
        (0, [1, 2, 3, 4], 0b1000, 2),
        (0, [1, 2], 0b10, 1),  # one click at the end of a short list
        (1, [7, 8], 0b01, 4),
        (1, [7, 8], 0b11, 3),
        (2, [9], 0b1, 2),
    ]
    data = patterns_of(table_of(serps))
    counted = MODELS["DCM"].fit(data, Options("guo", "per-query", "none")).estimates["v"]
    nan = np.nan
    value = [[0, 0.8, 0.8, 0.8], [4 / 7] * 4, [1, 0.5, 0.5, 0.5]]
    raw = [[nan, 9 / 11, 0.5, 1], [nan, 1, nan, nan], [nan] * 4]
    assert counted.value == pytest.approx(np.array(value))
    assert counted.raw == pytest.approx(np.array(raw), nan_ok=True)
    exact = MODELS["DCM"].fit(data, Options("em", "per-query", "none")).estimates["v"]
    replaced = [[False, False, True, True], [False, True, False, False], [False] * 4]
    assert np.isfinite(exact.raw).tolist() == replaced
