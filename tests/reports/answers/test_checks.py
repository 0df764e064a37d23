"""Which click models can be believed, in words."""

import numpy as np
import pandas as pd

from logeval.clicks.quality.deviations import ModelVerdict
from logeval.clicks.quality.predictive import Checks


def model(name, faulted=0, serps=500, error=0.1, faulted_queries=0):
    right = [f"right {i}" for i in range(8 - faulted)]
    wrong = [f"wrong {i}" for i in range(faulted)]
    verdict = ModelVerdict(name, [f"too few of {w}" for w in wrong], wrong, [], [], 3,
                           faulted_queries, serps)  # fmt: skip
    object.__setattr__(verdict, "right", right)
    return verdict, error


def verdict(*models, notes=(), half=0.04):
    rows = [
        {"model": v.model, "query": None, "check": "ctr-by-rank", "components": 1, "error": error}
        for v, error in models
    ]
    curves = [
        {"query": None, "check": "ctr-by-rank", "low": 0.2 - half, "high": 0.2 + half}
        for _ in models
    ]
    found = Checks(
        pd.DataFrame(rows), pd.DataFrame(curves), {v.model: v for v, _ in models}, list(notes),
        manifest={"log_folder": "my log"},
    )  # fmt: skip
    return found.verdict()


def test_models_that_nothing_faults_click_like_the_log_as_far_as_it_shows(monkeypatch):
    monkeypatch.setattr(ModelVerdict, "line", property(lambda v: f"{v.model}: said"))
    found = verdict(model("DCM"), model("PBM"))
    assert found.answer == (
        "As far as 500 searches show, DCM and PBM click like the users of the log: none of 8 "
        "checks over all queries faults them."
    )
    assert found.because == ["DCM: said", "PBM: said"]
    assert found.limits == [
        "500 searches show large faults only: a CTR at a rank that is off by less than about 0.040 "
        "does not show"
    ]
    assert found.next == []


def test_models_that_are_faulted_are_set_apart(monkeypatch):
    monkeypatch.setattr(ModelVerdict, "line", property(lambda v: v.model))
    found = verdict(model("DCM", faulted=3), model("PBM", faulted_queries=2))
    assert found.answer.startswith("As far as 500 searches show, PBM clicks like the users")
    assert found.answer.endswith("faults it. DCM (faulted in 3) does not.")
    assert "PBM: faulted by itself in 2 of 3 queries" in found.limits[1]


def test_where_all_are_faulted_the_nearest_is_named_and_what_to_do(monkeypatch):
    monkeypatch.setattr(ModelVerdict, "line", property(lambda v: v.model))
    found = verdict(model("DCM", 4), model("PBM", 2, error=0.3), model("UBM", 2, error=0.2))
    assert found.answer == (
        "No model clicks like the users of the log. UBM comes nearest, faulted in 2 of 8 checks on "
        "500 searches; what policies lose on them need not be what they lose in traffic."
    )
    assert found.because == ["UBM", "PBM", "DCM"]
    assert "`logeval compare-models 'my log' -m all`" in found.next[0]
    assert found.limits == []
    one = verdict(model("DCM", 4))
    assert one.answer.startswith("DCM does not click like the users of the log: it is faulted in 4")


def test_with_many_searches_small_faults_show_and_notes_stay(monkeypatch):
    monkeypatch.setattr(ModelVerdict, "line", property(lambda v: v.model))
    found = verdict(model("DCM", serps=20_000), notes=["the models were fitted to these SERPs"])
    assert found.limits == ["the models were fitted to these SERPs"]
    assert not np.any(["nan" in line for line in found.limits])
