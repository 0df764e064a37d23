"""Predictive checks of fitted models, from a log to words."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from logeval.clicks.collection import FittedModels
from logeval.clicks.fit import Fit, fit_models
from logeval.clicks.quality.deviations import CHECKS
from logeval.clicks.quality.stages import check_models
from logeval.clicks.quality.value import LEVELS, cross_fitted, slopes, slopes_of
from logeval.errors import LogevalError
from logeval.storage import tables
from logeval.storage.tables import manifest_of
from tests.clicks.examples import random_lists, random_model
from tests.serps import Serp, sampled_serps, write_serps

MODELS = ["CM", "DCM", "PBM"]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Clicks of DCMs whose users click several times."""
    rng = np.random.default_rng(8)
    serps: list[Serp] = []
    for q, n in enumerate((900, 600, 40)):
        model = random_model("DCM", rng, L=7, K=5, low=0.3, high=0.7)
        lists = random_lists(rng, n, 7, 5)
        serps += sampled_serps(model, lists, rng, query_id=q, first=len(serps))
    return write_serps(tmp_path_factory.mktemp("log"), serps)


@pytest.fixture(scope="module")
def models(log):
    return fit_models(log, MODELS, method="em", holdout=0.3, quiet=True)


@pytest.fixture(scope="module")
def checks(log, models):
    return check_models(models, log, simulations=80, quiet=True)


def test_the_true_model_is_cleared_and_wrong_ones_are_faulted(checks):
    verdicts = checks.verdicts
    assert verdicts["DCM"].cleared
    assert "clicks-per-serp" in verdicts["CM"].faulted
    assert verdicts["PBM"].faulted
    assert "last-click" in verdicts["PBM"].faulted
    said = checks.verdict()
    assert said.conclusion[0].about == "DCM"
    assert said.conclusion[0].code == "model-passes"
    assert {fact.about for fact in said.facts if fact.code == "model-fails"} >= {"CM", "PBM"}


def test_there_is_one_row_per_model_check_and_query(checks):
    rows = checks.table
    assert len(rows) == len(MODELS) * len(CHECKS) * 3  # two frequent queries, and all
    assert not rows.duplicated(["model", "check", "query"]).any()
    assert (rows["p_value"] <= rows["corrected"]).all()
    judged = rows[rows["components"] > 0]
    assert (judged["low"] <= judged["high"]).all()
    assert set(rows[rows["query"].isna()]["serps"]) == {rows[rows["query"].isna()]["serps"].iloc[0]}
    told = json.loads(json.dumps(checks.rows()))
    assert len(told["checks"]) == len(rows) + len(MODELS) * len(LEVELS)
    assert [r["level"] for r in told["checks"] if r["check"] == "value"] == [*LEVELS] * len(MODELS)
    assert told["facts"] == checks.verdict().records()


def test_what_lists_earn_is_checked_on_what_was_held_out(log, models, checks):
    """With a fit, too: its report keeps the slopes, by which whole lists are judged."""
    _, held_out = Fit(log, ["CM"], holdout=0.3).patterns()
    for name in MODELS:
        assert (
            checks.slopes[name] == slopes_of(models[name].report) == slopes(models[name], held_out)
        )
        whole = checks.slopes[name][2]
        assert ("value" in checks.verdicts[name].faulted) == (whole.passes is False)
        assert ("value" in models[name].report["checks"]["errors"]) == (whole.passes is not None)


def test_results_depend_on_the_seed_alone(log, models, checks):
    again = check_models(models, log, simulations=80, quiet=True)
    assert again.table.equals(checks.table)
    other = check_models(models, log, simulations=80, seed=1, quiet=True)
    assert not other.table["p_value"].equals(checks.table["p_value"])


def test_tables_are_written_in_their_schemas(checks, tmp_path):
    replace(checks, manifest=manifest_of("check-models", {}, [])).write(tmp_path / "c")
    assert tables.read_table(tmp_path / "c", "checks").num_rows == len(checks.table)
    assert tables.read_table(tmp_path / "c", "curves").num_rows == len(checks.curves)


def test_models_of_other_serps_are_checked_with_a_note(log, models, tmp_path):
    whole = fit_models(log, ["DCM"], method="em", quiet=True)
    lenient = check_models(whole, log, simulations=80, quiet=True)
    asked = Fit(log, ["DCM"], method="em")
    data, _ = asked.patterns()
    apart = cross_fitted(lambda part: asked.fit("DCM", part, intervals=False), data)
    assert lenient.slopes["DCM"] == slopes_of(whole["DCM"].report) == apart
    assert "lenient" in lenient.notes[0]
    assert lenient.verdicts["DCM"].cleared
    known = FittedModels({"DCM": without_draws(models["DCM"])})  # no manifest: from elsewhere
    given = check_models(known, log, simulations=80, serps=500, quiet=True)
    assert "not fitted to this log" in given.notes[0]
    assert "DCM: there are no draws of the parameters" in given.notes[1]
    assert "500 SERPs, drawn from 1,540" in given.notes[2]
    other = write_serps(tmp_path / "other", [Serp(77, [1, 2], [0, 1])])
    with pytest.raises(LogevalError, match="no SERPs of the queries"):
        check_models(known, other, quiet=True)
    with pytest.raises(LogevalError, match="simulations=20"):
        check_models(known, log, simulations=20, quiet=True)


def test_unknown_parameters_widen_the_bands_and_keep_their_middle(log):
    """Of a fit to a tenth of the log; without draws its parameters are taken as known."""
    unknown = fit_models(log, ["DCM"], method="em", holdout=0.9, quiet=True)
    known = replace(unknown, fitted={"DCM": without_draws(unknown["DCM"])})
    wide, narrow = (
        check_models(m, log, simulations=80, quiet=True).curves for m in (unknown, known)
    )
    assert wide["expected"].to_numpy() == pytest.approx(narrow["expected"].to_numpy(), abs=0.1)
    widths = [(curves["high"] - curves["low"]).mean() for curves in (wide, narrow)]
    assert widths[0] > 1.5 * widths[1]


def without_draws(fitted):
    bare = {name: replace(x, draws=None) for name, x in fitted.estimates.items()}
    return replace(fitted, estimates=bare)
