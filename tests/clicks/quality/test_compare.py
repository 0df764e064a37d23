"""Models compared on held-out clicks, and scored on another log."""

from __future__ import annotations

import numpy as np
import pytest

from logeval.clicks.fit import fit_models
from logeval.clicks.quality import scores
from logeval.clicks.quality.stages import compare_models, score
from logeval.clicks.settings import Fitting
from logeval.errors import LogevalError
from logeval.storage.tables import path_of
from tests.serps import Serp, write_serps


def test_the_model_behind_the_clicks_wins_the_comparison(log, tmp_path):
    names = ["GCTR", "RCTR", "PBM", "CM", "DCM"]
    comparison = compare_models(log, names, holdout=0.3, method="em", out=tmp_path, quiet=True)
    overall = comparison.overall()
    assert overall.index[0] == "DCM"
    assert (overall["low"] <= overall["value"]).all().all()
    assert (overall["value"] <= overall["high"]).all().all()
    differences = comparison.table[comparison.table["baseline"].notna()]
    paired = differences[differences["measure"] == "log-likelihood"].set_index("model")
    assert paired.loc["GCTR", "high"] < 0
    cm = comparison.coverage.set_index("model").loc["CM"]
    assert cm["impossible"] > 0
    assert path_of(tmp_path, "quality").exists()


def test_differences_are_drawn_from_the_best_model(log):
    comparison = compare_models(log, ["rctr", "dcm", "gctr"], holdout=0.3, quiet=True)
    axes = comparison.plot_differences()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["RCTR", "GCTR"]
    assert axes.get_xlabel() == "log likelihood, difference to DCM"
    assert (axes.lines[1].get_xdata() < 0).all()
    assert len(comparison.plot().containers) == 3
    with pytest.raises(LogevalError, match="needs two"):
        compare_models(log, ["dcm"], quiet=True).plot_differences()


def test_unseen_items_and_queries_are_scored_by_the_prior(log, tmp_path):
    models = fit_models(log, ["DCM", "UBM"], quiet=True)
    other = write_serps(
        tmp_path / "other",
        [
            Serp(0, [100, 555, 101, 102, 103], [1, 0, 0, 0, 0], session_id=0),  # longer, one unseen
            Serp(77, [1, 2], [0, 1], session_id=1),  # unseen
        ],
    )
    coverage = score(models, other).coverage.set_index("model")
    assert coverage.loc["DCM", "unseen_items"] == pytest.approx(3 / 7)
    assert coverage.loc["UBM", "unseen_queries"] == pytest.approx(1 / 2)
    known = score(models, other, known_queries=True)
    assert known.coverage["serps"].tolist() == [1, 1]
    assert np.isfinite(known.table["value"]).all()


def test_the_comparison_is_of_the_scores_that_fitting_reports(log, monkeypatch):
    """Of EM's values, which is fast; fitting reports the mean of the posterior by default."""
    fit = Fitting.fit
    monkeypatch.setattr(
        Fitting, "fit", lambda self, *given, **_: fit(self, *given, intervals=False)
    )
    names = ["PBM", "DCM"]
    overall = compare_models(log, names, holdout=0.3, seed=5, quiet=True).overall()["value"]
    reported = fit_models(log, names, holdout=0.3, seed=5, quiet=True).summary().set_index("model")
    for measure in ("log-likelihood", "perplexity", "conditional-perplexity"):
        ours = reported.loc[names, measure.replace("-", "_")]
        assert overall.loc[names, measure].to_numpy() == pytest.approx(ours.to_numpy(), rel=1e-9)


def test_every_model_is_scored_once(log, monkeypatch):
    scored = []
    plain = scores.score_model
    monkeypatch.setattr(scores, "score_model", lambda f, d: scored.append(f.model) or plain(f, d))
    compare_models(log, ["CM", "DCM"], quiet=True)
    assert scored == ["CM", "DCM"]
