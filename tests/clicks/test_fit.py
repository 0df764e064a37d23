"""Fitting models to a log."""

from __future__ import annotations

import pytest

from logeval.clicks.fit import fit_models
from logeval.errors import LogevalError
from logeval.log.log import load
from logeval.log.queries import Query
from logeval.storage.tables import path_of


def test_rare_items_are_dropped_and_counted(log):
    all_items = fit_models(log, "DCTR", quiet=True)
    few = fit_models(log, "DCTR", min_impressions=200, quiet=True)
    report = few.fitted["DCTR"].report
    assert report["dropped_items"] > 0
    assert report["items"] + report["dropped_items"] == all_items.fitted["DCTR"].report["items"]
    for name, query, model in few:
        whole = dict(zip(all_items[name, query].items, all_items[name, query].ctr, strict=True))
        assert all(whole[i] == c for i, c in zip(model.items, model.ctr, strict=True))


def test_fitted_models_are_not_fitted_again(log, tmp_path):
    out = tmp_path / "models"
    fit_models(log, "PBM", out=out, quiet=True)
    stamp = path_of(out, "models").stat().st_mtime_ns
    again = fit_models(log, "PBM", out=out, quiet=True)
    assert path_of(out, "models").stat().st_mtime_ns == stamp
    assert again.fitted["PBM"].report["converged"] == "3 of 3"
    fit_models(log, "PBM", out=out, smoothing="none", overwrite=True, quiet=True)
    assert path_of(out, "models").stat().st_mtime_ns != stamp


def test_the_exact_estimate_is_the_default_and_the_papers_recipe_has_its_names(log):
    methods = {m: fit_models(log, ["DCM", "SDBN", "PBM"], method=m, quiet=True).fitted
               for m in (None, "guo", "mle", "counting")}  # fmt: skip
    used = {m: [f.method for f in fitted.values()] for m, fitted in methods.items()}
    assert used[None] == ["em", "em", "em"]
    assert used["guo"] == ["guo", "em", "em"]
    assert used["mle"] == ["guo", "em", "em"]
    assert used["counting"] == ["guo", "counting", "em"]
    v = {m: fitted["DCM"].estimates["v"].value for m, fitted in methods.items()}
    assert (v["guo"] == v["mle"]).all()
    assert (v[None][:, :-2] < v["guo"][:, :-2]).all()  # counting takes every last click for the end


def test_partial_is_the_default_and_needs_the_prior_that_it_is(log):
    scopes = {s: fit_models(log, "DCM", smoothing=s, quiet=True).fitted["DCM"].scope
              for s in ("empirical-bayes", "none", "pyclick")}  # fmt: skip
    assert scopes == {"empirical-bayes": "partial", "none": "per-query", "pyclick": "per-query"}
    with pytest.raises(LogevalError, match="use scope=per-query"):
        fit_models(log, "DCM", scope="partial", smoothing="none", quiet=True)


def test_wrong_names_are_refused(log):
    for wrong in ({"method": "mcmc"}, {"scope": "global"}, {"smoothing": "beta"},
                  {"last_termination": "one"}):  # fmt: skip
        with pytest.raises(LogevalError, match=r"unknown|must be"):
            fit_models(log, "DCM", quiet=True, **wrong)


def test_a_log_that_is_open_is_not_opened_again(log, monkeypatch):
    opened = load(log)
    monkeypatch.setattr(
        "logeval.storage.tables.read_manifest", lambda path: pytest.fail(f"opened {path}")
    )
    assert fit_models(opened, "CM", quiet=True).queries == [Query(0), Query(1), Query(2)]


def test_a_folder_without_a_log_is_an_error(tmp_path):
    with pytest.raises(LogevalError, match="check the path"):
        fit_models(tmp_path / "nothing", "CM")


def test_a_number_of_draws_that_cannot_be_meant_is_refused(log):
    for draws in (-1, 1_001, 10**20):
        with pytest.raises(LogevalError, match=f"draws={draws}"):
            fit_models(log, "DCM", draws=draws, quiet=True)
    assert fit_models(log, "DCM", draws=0, quiet=True)["DCM"].estimates["w"].low.size
