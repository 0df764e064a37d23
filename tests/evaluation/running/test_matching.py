"""Which policies run on which problems, and what is said of these."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from logeval.errors import LogevalError
from logeval.evaluation.evaluate import evaluate
from logeval.evaluation.matching import unproven
from logeval.evaluation.results import Runs
from logeval.facts import Fact
from logeval.tracks.registry import synthetic_problem
from tests.stand_in import models

NEEDLE = "rank1:K=6,L=4,p=0.25,gap=0.5"
SHORT = {"horizon": 300, "runs": 2, "quiet": True}


def test_both_tracks_run_on_the_same_pbm():
    given = models("PBM", (5, 7), K=3)
    runs = evaluate(given, policies=["dcmKL-UCB", "Rank1ElimKL", "Oracle"], **SHORT)
    summary = runs.summary().set_index(["track", "policy"])
    assert summary.loc[("ranking", "Oracle"), "regret"] == 0.0
    assert summary.loc[("rank1", "Oracle"), "regret"] == 0.0
    assert summary.loc[("rank1", "Rank1ElimKL"), "regret"] > 0.0
    assert runs.panels() == [("PBM", "rank1"), ("PBM", "ranking")]
    assert runs.title(runs.panels()[0]) == "PBM (rank1)"
    assert set(runs.curves("PBM", "7@0", "rank1")) == {"Rank1ElimKL", "Oracle"}
    with pytest.raises(LogevalError, match="in the tracks rank1, ranking"):
        runs.curves("PBM")


def test_the_reward_of_a_pair_is_its_click_probability():
    given = models("PBM", (5,), K=3)
    runs = evaluate(given, policies=["Oracle"], track="rank1", **SHORT)
    users = given[0][2].users
    best = users.w.max() * users.e[:, 0].max()
    assert runs.to_pandas()["optimal_reward"].max() == pytest.approx(300 * best)
    clicks = runs.to_pandas().query("t == 300")["clicks"].to_numpy()
    assert np.abs(clicks - 300 * best).max() < 5 * np.sqrt(300 * 0.25)


def test_needles_are_named_in_two_ways(tmp_path):
    one = evaluate(problem=NEEDLE, policies=["UCB1"], out=tmp_path / "one", **SHORT)
    two = evaluate(
        problem="rank1(K=6,L=4,p=0.25,gap=0.5)", policies=["UCB1"], out=tmp_path / "two",
        workers=2, **SHORT,
    )  # fmt: skip
    assert one.rows.equals(two.rows)
    assert set(one.to_pandas()["simulator"]) == {"rank1(K=6,L=4,p=0.25,gap=0.5)"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"problem": NEEDLE, "policies": ["dcmKL-UCB"]}, "cannot run on a rank1 problem"),
        ({"models": models("UBM", (5,), K=3), "policies": ["UCB1"]}, "needs a PBM"),
        ({"problem": NEEDLE, "policies": ["UCB1"], "track": "ranking"}, "not of the track"),
        ({"problem": NEEDLE, "policies": ["UCB1"], "track": "rank2"}, "did you mean rank1"),
        ({"problem": "rank1:K=6,L=4,p=0.9,gap=0.5", "policies": ["UCB1"]}, "must hold"),
    ],
)
def test_wrong_tracks_are_named(arguments, message):
    with pytest.raises(LogevalError, match=message):
        evaluate(**arguments, **SHORT)


def test_a_fact_about_shortened_lists_stays_with_the_runs(tmp_path):
    mixed = [*models("DCM", (5,), K=3), *models("CM", (5,), K=2)]
    done = evaluate(mixed, policies=["Random"], out=tmp_path / "out", **SHORT)
    (fact,) = done.facts
    assert (fact.code, fact.more["positions"]) == ("lists-shortened", 2)
    assert "all lists have 2 positions" in done.notes[0]
    assert Runs.load(tmp_path / "out").notes == done.notes


def test_curves_are_computed_once(monkeypatch):
    runs = evaluate(models("DCM", (5,), K=3), policies=["Random"], **SHORT)
    first = runs.curves("DCM")
    monkeypatch.setattr("logeval.evaluation.statistics.intervals.interval", None)
    assert runs.curves("DCM") is first


@pytest.mark.parametrize(
    ("gaps", "code"), [((0.2, 0.4), "best-unproven-by"), ((0.2, math.nan), "best-unproven")]
)
def test_best_lists_that_are_not_proven_are_counted(gaps, code):
    proven = synthetic_problem("PBM(w=0.5/0.4/0.3,e=1/0.6)")
    (fact,) = unproven([proven, *(replace(proven, gap=gap) for gap in gaps)])
    assert (fact.code, fact.value, fact.more) == (code, 2, {"problems": 3})
    assert fact.high == (pytest.approx(0.3) if code.endswith("by") else None)
    assert Fact.of(json.loads(json.dumps(fact.record()))) == fact
