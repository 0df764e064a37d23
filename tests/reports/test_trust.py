"""What is said of the simulators, before anything else."""

import numpy as np
import pandas as pd
import pytest

from logeval.reports.trust import todays_lists, trust
from logeval.reports.verdict import verdict
from tests.reports.tables import around, problem, rows, runs_of

BASE = around(10.0, 3.0)
TABLE = {"A": BASE, "B": [x + 5.0 for x in BASE]}
FINE = {"faulted": [], "faults": [], "judged": 8, "serps": 2000, "held_out": True}


def faulted(*checks, words="too few SERPs with 5+ clicks (.009 in simulation, .045 in the log)"):
    return FINE | {"faulted": list(checks), "faults": [words for _ in checks]}


def runs_with(simulators, draws=8, frames=None, **facts):
    """Runs on simulators whose checks are given; facts of all their problems."""
    frames = frames or [rows(TABLE, simulator=name) for name in simulators]
    about = {"serps": 1000, **facts}
    problems = [problem(f"{q}@0", name, **about) for name in simulators for q in range(12)]
    known = {name: {"checks": checks, "draws": draws} for name, checks in simulators.items()}
    return runs_of(*frames, problems=problems, simulators=known)


def sentences(simulators, about, **options):
    return [text for text in trust(runs_with(simulators, **options)) if about in text]


# -- checks -----------------------------------------------------------------------------------


def test_simulators_that_no_check_faults_are_sound():
    runs = runs_with({"DCM": FINE, "PBM": FINE})
    assert trust(runs) == [
        "The checks against the log fault none of them (8 checks on 2,000 SERPs)"
    ]
    assert verdict(runs).sound


def test_what_is_faulted_comes_first_with_the_clearest_fault():
    runs = runs_with({"DCM": faulted("distance", "after-click"), "PBM": FINE})
    (first, *_) = trust(runs)
    assert first.startswith(
        "Not all: the checks against the log fault DCM by 2 of 8 (too few SERPs with 5+ clicks ("
        ".009 in simulation, .045 in the log)), and PBM by none. Such users are not yours: "
        "expect other numbers in traffic, and go by PBM"
    )
    assert not verdict(runs).sound


@pytest.mark.parametrize(
    ("simulators", "advised"),
    [(["DCM", "PBM"], True), (["DCM", "DCM(classes=3)"], False)],
)
def test_where_all_are_faulted_users_who_differ_are_the_next_step(simulators, advised):
    (first, *_) = trust(runs_with({name: faulted("distance") for name in simulators}))
    assert first.startswith("No: the checks against the log fault ")
    assert "trust what holds on all simulators more than what holds on one" in first
    assert ("; users who differ (fit-models --classes auto)" in first) == advised


def test_fits_of_one_model_are_said_together():
    two = {"DCM": faulted("distance"), "DCM(scope=pooled)": faulted("distance", "last-click")}
    (first,) = sentences(two, "the checks against the log")
    assert "fault 2 fits of DCM by 1 to 2 of 8 (" in first


def test_checks_on_what_was_fitted_are_lenient():
    assert sentences({"DCM": FINE | {"held_out": False}}, "lenient")
    assert not sentences({"DCM": FINE}, "lenient")


def test_simulators_that_nobody_checked():
    runs = runs_with({"DCM": None})
    assert trust(runs) == ["DCM: not checked against a log; logeval check-models does it"]
    assert not verdict(runs).sound


def test_synthetic_users_are_what_they_are():
    runs = runs_of(rows(TABLE))
    assert trust(runs) == []
    assert verdict(runs).sound


# -- parameters and SERPs ---------------------------------------------------------------------


def test_parameters_taken_as_exact():
    runs = runs_with({"DCM": FINE, "PBM": FINE}, draws=0)
    (text,) = [text for text in trust(runs) if "exact" in text]
    assert text.startswith("The parameters of DCM and PBM were taken as exact")
    assert "--draws 8" in text
    assert not verdict(runs).sound


@pytest.mark.parametrize(("serps", "thin"), [(299, True), (300, False)])
def test_thin_queries_are_counted(serps, thin):
    found = sentences({"DCM": FINE}, "fewer than 300 SERPs", serps=serps)
    assert len(found) == thin
    if thin:
        # 4 positions for 8 items
        assert found[0].startswith(
            "12 of 12 queries have fewer than 300 SERPs (the fewest 299; in the median query an "
            "item was shown 150 times)"
        )
    assert verdict(runs_with({"DCM": FINE}, serps=serps)).sound != thin


def test_simulators_of_hardly_any_serp_are_not_tested():
    runs = runs_with({"DCM": FINE}, serps=1)
    assert runs.summary()["p"].isna().all()
    assert runs.summary()["in_best_set"].all()
    assert runs.compare()[["p", "low", "high", "ratio_p"]].isna().all().all()
    found = verdict(runs)
    assert found.answer.startswith("A loses least on DCM. Whether that is chance cannot be tested")
    assert any("fitted to 1 SERPs of a query at most" in text for text in found.limits)
    assert runs_with({"DCM": FINE}, serps=10).summary()["p"].notna().any()


# -- today's lists ----------------------------------------------------------------------------


def lists(simulated, log=1.0, error=0.02):
    return {"ranker_clicks": simulated, "log_clicks": log, "log_clicks_error": error}


def test_clicks_on_todays_lists_within_chance():
    (text,) = sentences({"DCM": FINE, "PBM": FINE}, "today's lists", **lists(1.03))
    assert text == (
        "On today's lists the users of DCM and PBM click as often as the log, within chance"
    )


def test_clicks_on_todays_lists_that_chance_does_not_explain():
    (text,) = sentences({"DCM": FINE}, "today's lists", **lists(1.2))
    assert "DCM in 12 of 12 queries (query 0: 1.20 clicks per search in simulation, 1.00 in" in text
    assert not verdict(runs_with({"DCM": FINE}, **lists(1.2))).sound


def test_the_threshold_holds_for_all_queries_together():
    """Bonferroni: with 12 queries |z| must exceed 2.87, and its z is (simulated - log) / error."""
    for z, wrong in ((2.8, False), (2.95, True)):
        table = todays_lists(runs_with({"DCM": FINE}, **lists(1.0 + 0.02 * z)))
        assert table["z"].to_numpy() == pytest.approx(z)
        assert table["faulted"].all() == wrong


def test_draws_widen_what_chance_allows():
    frame = pd.concat([rows(TABLE).assign(draw=d) for d in (1, 2)])
    facts = [
        problem("0@0", draw=d, serps=1000, **lists(value)) for d, value in ((1, 1.0), (2, 1.2))
    ]
    runs = runs_of(frame, problems=facts, simulators={"DCM": {"checks": FINE, "draws": 2}})
    row = todays_lists(runs).iloc[0]
    assert row["simulated"] == pytest.approx(1.1)
    assert row["z"] == pytest.approx(0.1 / np.hypot(0.02, 0.2 / np.sqrt(2)))
    assert not row["faulted"]


def test_false_alarms_of_todays_lists():
    """Of simulators that are right, at most 5% are said to be wrong."""
    rng, alarms, worlds = np.random.default_rng(3), 0, 400
    for _ in range(worlds):
        facts = [
            problem(f"{q}@0", serps=1000, **lists(1.0, 1.0 + 0.02 * rng.normal()))
            for q in range(20)
        ]
        alarms += todays_lists(runs_of(rows({"A": [1.0]}), problems=facts))["faulted"].any()
    assert alarms / worlds < 0.05 + 3 * np.sqrt(0.05 * 0.95 / worlds)
    assert alarms > 0


# -- what the clicks do not decide ------------------------------------------------------------


def fits(*tables):
    names = ["DCM", "DCM(scope=pooled)"]
    frames = [rows(table, simulator=name) for table, name in zip(tables, names, strict=True)]
    facts = [
        problem(f"{q}@0", name, serps=1000, best=best)
        for name, best in zip(names, (0.31, 0.48), strict=True)
        for q in range(12)
    ]
    known = {name: {"checks": FINE, "draws": 8} for name in names}
    runs = runs_of(*frames, problems=facts, simulators=known)
    return [text for text in trust(runs) if "equally well" in text]


def test_fits_that_predict_equally_well_and_agree():
    assert fits(TABLE, TABLE) == [
        "Fits that predict held-out SERPs equally well put the best list at 0.31 to 0.48 satisfied "
        "searches (2 fits of DCM) per search: the clicks do not decide this; A loses least on all "
        "of them"
    ]


def test_fits_that_disagree():
    (text,) = fits(TABLE, {"B": BASE, "A": TABLE["B"]})
    assert text.endswith("which policy loses least depends on the fit (A or B)")


def test_fits_with_classes_predict_better_and_are_not_counted_among_the_others():
    known = {name: {"checks": FINE, "draws": 8} for name in ("DCM", "DCM(classes=2)")}
    frames = [rows(TABLE, simulator=name) for name in known]
    facts = [problem(f"{q}@0", name, serps=1000) for name in known for q in range(12)]
    found = trust(runs_of(*frames, problems=facts, simulators=known))
    assert not [text for text in found if "equally well" in text]


def test_queries_that_rest_on_the_prior_are_said_once_for_the_fits_of_a_model():
    about = {"DCM": 2, "DCM(scope=pooled)": 3, "PBM": 1, "UBM": 0}
    known = {
        name: {
            "checks": FINE,
            "draws": 8,
            "identified": {"not_carried": ["1@0"] * n, "queries": 12},
        }
        for name, n in about.items()
    }
    runs = runs_of(*(rows(TABLE, simulator=name) for name in known), simulators=known)
    (text,) = [text for text in trust(runs) if "prior" in text]
    assert "are too few, for 2 fits of DCM in 2 to 3 of 12 queries and PBM in 1 of 12" in text
    assert "docs/support.md" in text
    assert not verdict(runs).sound


def test_one_fit_of_each_model_has_nothing_to_disagree_with():
    assert not sentences({"DCM": FINE, "PBM": FINE}, "equally well")


def clicks(a, b):
    frame = rows(TABLE)
    frame["expected_clicks"] = frame["t"] * np.where(frame["policy"] == "A", a, b)
    return sentences({"DCM": FINE}, "satisfaction", frames=[frame], ranker_clicks=1.1)


def test_clicks_that_agree_with_satisfaction():
    assert clicks(1.5, 1.2) == [
        "A log does not show satisfaction. In clicks, which it does, the same policy earns most "
        "(DCM: 1.50 per search, today's ranker 1.10)"
    ]


def test_clicks_that_do_not():
    assert clicks(1.2, 1.5) == [
        "A log does not show satisfaction. In clicks, which it does, another does: B (DCM: 1.50 "
        "per search, today's ranker 1.10, A 1.20)"
    ]


def test_simulators_that_no_policy_ran_on_are_not_spoken_of():
    """The rank-1 track leaves a DCM out."""
    known = {name: {"checks": FINE, "draws": 2} for name in ("PBM", "DCM")}
    assert list(runs_of(rows(TABLE, simulator="PBM"), simulators=known).simulators) == ["PBM"]
