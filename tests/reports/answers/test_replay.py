"""What ``replay`` says, as facts: tables by hand."""

import numpy as np
import pandas as pd
import pytest

from logeval.replay.estimate import Estimates
from logeval.replay.policy import PolicyReplay
from logeval.replay.validate import Validation
from logeval.reports.answers.replay import targets

ROW = {
    "positions": 3, "value": 0.8, "low": 0.75, "high": 0.85, "truth": np.nan, "logged": 0.5,
    "difference": 0.3, "difference_low": 0.25, "difference_high": 0.35, "serps": 1000,
    "covered": 1.0, "support": 1.0, "effective_serps": 500.0, "clipped": 0.0, "worse": 0.0,
    "largest_weight": 3.0, "supported_positions": 3,
}  # fmt: skip
NOTHING = dict.fromkeys(
    ("value", "low", "high", "difference", "difference_low", "difference_high", "worse"), np.nan
) | {"covered": 0.0, "support": 0.25, "supported_positions": 1, "serps": 0}
DCM_BEST = {"dcm": -0.3, "ubm": -0.31, "dbn": -0.32, "pbm": -0.4}


def of(estimator, target="mine", queries=(), **changes):
    """The rows of an estimator: over all queries, and by query with their own changes."""
    rows = [{"target": target, "query": None, "estimator": estimator, **ROW, **changes}]
    for i, own in enumerate(queries):
        rows.append({"target": target, "query": str(i + 1), "estimator": estimator, **ROW, **own})
    return rows


def estimates(*rows, contradictions=(), predicting=None, **manifest):
    table = pd.DataFrame([row for rows_ in rows for row in rows_])
    return Estimates(table, [], list(contradictions), manifest, predicting)


def verdict(*rows, **about):
    return estimates(*rows, **about).verdict()


def apart(first, second, difference, target="mine"):
    return {"target": target, "first": first, "second": second, "difference": difference,
            "low": difference - 0.05, "high": difference + 0.05}  # fmt: skip


def believed(*rows, **about):
    """The estimators of the first target."""
    return targets(estimates(*rows, **about))[0][-1]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, "ranker-more"),
        ({"difference": -0.2, "difference_low": -0.3, "difference_high": -0.1}, "ranker-less"),
        ({"difference": 0.1, "difference_low": -0.1, "difference_high": 0.3}, "ranker-unclear"),
        ({"difference": 0.0}, "ranker-same"),
        (dict.fromkeys(("difference_low", "difference_high"), np.nan), "ranker-no-interval"),
        (NOTHING, "ranker-unknown"),
    ],
)
def test_what_a_ranker_would_have_earned(changes, code):
    assert [fact.code for fact in verdict(of("IP", **changes)).conclusion] == [code]


def test_of_a_ranker_that_earns_less_the_interval_is_of_what_it_earns_less():
    found = verdict(of("IP", difference=-0.2, difference_low=-0.3, difference_high=-0.1))
    fact = found.fact("ranker-less")
    assert (fact.value, fact.low, fact.high, fact.more["difference"]) == (0.8, 0.1, 0.3, 0.2)


def test_believed_is_what_assumes_least_and_of_several_the_narrowest():
    wide = {"difference_low": 0.1, "difference_high": 0.5}
    assert believed(of("PBM"), of("IP", **wide), of("Prefix"), of("RCTR")) == "Prefix"
    assert believed(of("PBM"), of("List"), of("IP")) == "List"


def test_an_estimator_that_rests_on_few_searches_or_covers_less_is_not_believed_beside_others():
    assert believed(of("List", effective_serps=99.0), of("IP")) == "IP"
    assert believed(of("List", covered=0.5), of("IP", covered=0.9)) == "IP"
    alone = verdict(of("List", effective_serps=40.0))
    assert alone.fact("few-effective").value == 40.0


def test_a_strong_assumption_that_nothing_checks_is_said():
    assert verdict(of("PBM"), of("IP", **NOTHING)).fact("no-check").level == "caution"
    assert verdict(of("PBM"), of("IP", covered=0.2)).fact("no-check") is None


def test_estimators_that_assume_as_little_and_differ_leave_it_open():
    rows = of("PBM"), of("DR", value=0.6, difference=0.1), of("Item")
    found = verdict(*rows, contradictions=[apart("DR", "PBM", -0.2)])
    assert found.fact("ranker-depends").more == {"says": ["PBM says 0.80", "DR says 0.60"]}
    assert believed(*rows, contradictions=[apart("DR", "PBM", -0.2)]) == "PBM or DR"


def test_an_estimator_that_assumes_more_and_differs_is_wrong():
    rows, pair = (of("IP"), of("PBM", value=1.0)), [apart("PBM", "IP", 0.2)]
    assert believed(*rows, contradictions=pair) == "IP"
    assert verdict(*rows, contradictions=pair).fact("contradicted").more == {"estimator": "PBM"}


def test_believed_is_dr_with_the_model_that_predicts_best():
    assert believed(of("IP"), of("PBM"), of("DR(dcm)"), predicting=DCM_BEST) == "DR(dcm)"
    rows = of("IP", value=1.0), of("DR(dcm)")
    pair = [apart("IP", "DR(dcm)", 0.2)]
    assert believed(*rows, predicting=DCM_BEST, contradictions=pair) == "DR(dcm)"


def test_what_is_refuted_for_one_target_answers_no_other():
    rows = [of("IP", "a"), of("Prefix", "a", value=0.6), of("IP", "b"),
            of("Prefix", "b", **NOTHING)]  # fmt: skip
    found = verdict(*rows, contradictions=[apart("IP", "Prefix", 0.2, "a")])
    assert (found.conclusion[0].about, found.conclusion[0].value) == ("a", 0.6)
    lost = found.fact("ranker-refuted")
    assert (lost.about, lost.more) == ("b", {"estimators": ["IP"], "by": "Prefix"})


def test_what_is_not_covered_never_shown_clipped_or_chosen_on_these_clicks_is_said():
    found = verdict(of("IP", "best:dcm", covered=0.9, support=0.9, clipped=0.02, truth=0.7,
                       truth_low=0.66, truth_high=0.74, queries=[{}, NOTHING]),
                    log_serps=10_000)  # fmt: skip
    assert found.fact("covers").value == 0.9
    assert (found.fact("not-covered").value, found.fact("not-covered").threshold) == (1.0, 2.0)
    assert found.fact("never-shown").value == pytest.approx(0.1)
    assert found.fact("clipped").value == 0.02
    assert found.fact("chosen-on-these-clicks") is not None
    assert found.fact("own-clicks").level == "caution"
    assert verdict(of("IP"), log_serps=10_000).fact("part-of-the-log").value == pytest.approx(0.1)


# -- replayed policies ----------------------------------------------------------------------------


def rows_of(policy, clicks, end=200, queries=("1",)):
    """Clicks per step of four shuffles at the steps 50 and 200; beyond the end none."""
    return [
        {"policy": policy, "query": query, "run": run, "t": t,
         "clicks": own * t if t <= end else np.nan, "steps": end, "passed": 5 * end,
         "serps": 10_000, "exhausted": end < 200}
        for query in queries for run, own in enumerate(clicks) for t in (50, 200)
    ]  # fmt: skip


def replayed(*rows, logged=0.5):
    table = pd.DataFrame([row for rows_ in rows for row in rows_])
    known = dict.fromkeys(table["query"].unique(), logged)
    return PolicyReplay(table, known, {}).verdict()


NEAR, LOW = (0.69, 0.7, 0.71, 0.7), (0.19, 0.2, 0.21, 0.2)


def test_who_earned_most_on_the_log():
    found = replayed(rows_of("A", NEAR), rows_of("B", (0.6, 0.8, 0.7, 0.65)), rows_of("C", LOW))
    assert (found.conclusion[0].about, found.conclusion[0].more) == ("A", {"steps": 200})
    assert found.conclusion[0].value == pytest.approx(0.7)
    assert found.fact("replayed-tied").more == {"others": ["B"]}
    assert found.fact("replayed-logger").value == 0.5
    assert found.fact("followed-to") is None


def test_how_far_the_log_can_follow():
    assert replayed(rows_of("A", NEAR, end=50)).fact("followed-to").threshold == 50.0
    assert replayed(rows_of("A", NEAR, end=4)).fact("cannot-follow").level == "stop"


# -- validation -----------------------------------------------------------------------------------


def choice(K=1, best="IP", beats=True, spread=0.05):
    return {"positions": K, "best": best, "rmse": 0.02, "floor": 0.015, "logger_rmse": 0.04,
            "ties": [], "worse": [], "beats_logger": beats, "spread": spread}  # fmt: skip


def validated(*choices, parts=20, support=1.0):
    rows = [
        {"estimator": name, "positions": c["positions"], "clip": float("nan"), "parts": parts,
         "support": support} for c in choices for name in ("IP", "RCTR")
    ]  # fmt: skip
    return Validation(pd.DataFrame(rows), list(choices), {}).verdict()


def test_the_estimator_to_use_at_each_length():
    found = validated(choice(1), choice(2), choice(3, best="Prefix"))
    assert [(fact.about, fact.more) for fact in found.conclusion] == [
        ("IP", {"at": ["1", "2"]}), ("Prefix", {"at": ["3"]})
    ]  # fmt: skip
    assert [fact.level for fact in found.facts] == ["fine"] * 3


def test_parts_that_cannot_choose():
    found = validated(
        choice(best="RCTR", beats=False), choice(2, spread=1e-4), parts=3, support=0.5
    )
    assert [fact.code for fact in found.conclusion] == ["cannot-choose", "same-rankings"]
    assert found.fact("few-parts").value == 3.0
    assert found.fact("little-support").value == 0.5
