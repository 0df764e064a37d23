"""With PyClick's smoothing and iterations we get PyClick's numbers (tests/golden/pyclick.json)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from logeval.clicks.estimation.fold import fold, held_out_rows
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.fit import fit_models
from logeval.clicks.quality import scores
from logeval.log.log import load
from logeval.log.queries import Query
from tests.serps import read_relpred, write_serps

GOLDEN = Path(__file__).parents[1] / "golden"
COUNTING, EM = 1e-9, 1e-6
TOLERANCE = dict.fromkeys(["GCTR", "RCTR", "DCTR", "CM", "DCM", "SDBN"], COUNTING)
TOLERANCE |= {"PBM": EM, "UBM": EM}
ITEM_FIELDS = {"ctr": "ctr", "attr": "w", "sat": "s"}


@pytest.fixture(scope="module")
def golden():
    return json.loads((GOLDEN / "pyclick.json").read_text())


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    serps = read_relpred(GOLDEN / "tiny.relpred.tsv")
    for i, serp in enumerate(serps):
        serp.day = 0 if i < 1500 else 1
    return write_serps(tmp_path_factory.mktemp("tiny"), serps, parts=2)


def fit(log, names, scope):
    return fit_models(
        log,
        names,
        method="counting",  # Guo's for the DCM; PBM and UBM have none, and use EM
        scope=scope,
        smoothing="pyclick",
        holdout="days:1",
        iterations=50,
        tolerance=0.0,
        last_termination="raw",
        quiet=True,
    )


@pytest.fixture(scope="module")
def pooled(log):
    return fit(log, list(TOLERANCE), "pooled")


def items_agree(model, field, expected, tolerance):
    ours = dict(zip(model.items.tolist(), getattr(model, field).tolist(), strict=True))
    assert ours.keys() == {int(item) for item in expected}
    for item, value in expected.items():
        assert ours[int(item)] == pytest.approx(value, abs=tolerance)


@pytest.mark.parametrize("name", TOLERANCE)
def test_pooled_parameters(golden, pooled, name):
    params, tolerance = golden["models"][name]["params"], TOLERANCE[name]
    for query in pooled.fitted[name].queries:
        model = pooled[name, query]
        for theirs, value in params.items():
            if isinstance(value, dict):
                items_agree(model, ITEM_FIELDS[theirs], value[str(query.query_id)], tolerance)
            elif theirs == "ctr":
                assert np.allclose(model.ctr, value, atol=tolerance, rtol=0)
            elif theirs == "cont":
                assert np.allclose(1 - model.v, value, atol=tolerance, rtol=0)
            elif name == "PBM":
                assert np.allclose(model.e, value, atol=tolerance, rtol=0)
            else:
                e = np.array(value)
                assert np.allclose(model.e[:, 0], e[:, -1], atol=tolerance, rtol=0)
                k, r = np.tril_indices(10, -1)
                assert np.allclose(model.e[k, r + 1], e[k, r], atol=tolerance, rtol=0)


@pytest.mark.parametrize("name", TOLERANCE)
def test_held_out_quality(golden, pooled, log, name):
    expected = golden["models"][name]
    table = held_out_rows(fold(load(log), holdout="days:1"))
    score = scores.score_model(pooled.fitted[name], patterns_of(table))
    sums = score.count @ score.columns()
    likelihood, perplexity, _ = scores.measures(sums)
    assert perplexity == pytest.approx(expected["test_perplexity"], abs=EM)
    assert scores.at_ranks(sums)[0] == pytest.approx(expected["test_perplexity_at_rank"], abs=EM)
    if name == "CM":  # PyClick's: marginal down to the first click, 1e-6 at every rank below
        data = patterns_of(table)
        below = np.arange(data.K) > data.first_click[:, None]
        p = np.where(below, np.log(1e-6), score.marginal * np.log(2))
        likelihood = float(data.count @ p.mean(axis=1) / data.count.sum())
    assert likelihood == pytest.approx(expected["test_loglikelihood"], abs=EM)


def test_per_query_parameters(golden, log):
    models = fit(log, ["DCM", "PBM"], "per-query")
    for query, expected in golden["per_query"].items():
        dcm, pbm = (models[name, Query(int(query), 0)] for name in ("DCM", "PBM"))
        items_agree(dcm, "w", expected["DCM"]["attr"], COUNTING)
        items_agree(pbm, "w", expected["PBM"]["attr"], EM)
        assert np.allclose(1 - dcm.v, expected["DCM"]["cont"], atol=COUNTING, rtol=0)
        assert np.allclose(pbm.e, expected["PBM"]["exam"], atol=EM, rtol=0)
