"""What replay's estimates say, in words: tables by hand."""

import numpy as np
import pandas as pd
import pytest

from logeval.facts import Fact
from logeval.replay.estimate import Estimates

ROW = {
    "positions": 3, "value": 0.8, "low": 0.75, "high": 0.85, "truth": np.nan, "logged": 0.5,
    "difference": 0.3, "difference_low": 0.25, "difference_high": 0.35, "serps": 1000,
    "covered": 1.0, "support": 1.0, "effective_serps": 500.0, "clipped": 0.0,
    "largest_weight": 3.0, "supported_positions": 3,
}  # fmt: skip
NOTHING = dict.fromkeys(
    ("value", "low", "high", "difference", "difference_low", "difference_high"), np.nan
) | {"covered": 0.0, "support": 0.25, "supported_positions": 1, "serps": 0}


def of(estimator, target="mine", queries=(), **changes):
    """The rows of an estimator: over all queries, and by query with their own changes."""
    rows = [{"target": target, "query": None, "estimator": estimator, **ROW, **changes}]
    for i, own in enumerate(queries):
        rows.append({"target": target, "query": str(i + 1), "estimator": estimator, **ROW, **own})
    return rows


def verdict(*rows, contradictions=(), facts=(), predicting=None, **manifest):
    table = pd.DataFrame([row for rows_ in rows for row in rows_])
    manifest = {"log_folder": "my log", **manifest}
    return Estimates(table, list(facts), list(contradictions), manifest, predicting).verdict()


def apart(first, second, difference, target="mine"):
    return {
        "target": target, "first": first, "second": second, "difference": difference,
        "low": difference - 0.05, "high": difference + 0.05,
    }  # fmt: skip


def test_the_answer_has_value_difference_interval_unit_and_estimator():
    found = verdict(of("IP"))
    assert found.answer == (
        "mine would have earned 0.80 clicks per search in the first 3 positions, 0.30 more than "
        "the log's ranker (95% interval 0.25 to 0.35), by IP."
    )
    assert (found.limits, found.next, found.others) == ([], [], [])


def test_of_a_ranker_that_earns_less_the_interval_is_of_what_it_earns_less():
    found = verdict(of("IP", difference=-0.2, difference_low=-0.3, difference_high=-0.1))
    assert "0.20 less than the log's ranker (95% interval 0.10 to 0.30)" in found.answer


def test_a_difference_within_chance_is_said_and_how_many_sessions_would_show_it():
    found = verdict(of("IP", difference=0.1, difference_low=-0.1, difference_high=0.3))
    assert "(95% interval -0.10 to 0.30), which may be chance" in found.answer
    # half an interval of 0.2 against 0.1: four times as many sessions
    assert found.next == [
        "a difference of this size would show with about 4.00 times as many sessions"
    ]


def test_believed_is_what_assumes_least_and_of_several_the_narrowest():
    wide = {"difference_low": 0.1, "difference_high": 0.5}
    found = verdict(of("PBM"), of("IP", **wide), of("Prefix"), of("RCTR"))
    assert found.answer.endswith("by Prefix.")
    assert found.because == [
        "Prefix assumes least of the estimators that cover as much: that users read from the top, "
        "so a click depends on the items down to it."  # those that assume more confirm nothing
    ]
    assert verdict(of("PBM"), of("List"), of("IP")).answer.endswith("by List.")


def test_an_estimator_that_rests_on_few_searches_is_not_believed_beside_others():
    found = verdict(of("List", effective_serps=99.0), of("IP"))
    assert found.answer.endswith("by IP.")
    alone = verdict(of("List", effective_serps=40.0))
    assert alone.answer.endswith("by List.")
    assert "rests on few searches (40 effective ones)" in alone.limits[0]


def test_an_estimator_that_covers_much_less_is_not_believed():
    found = verdict(of("List", covered=0.5), of("IP", covered=0.9))
    assert found.answer.endswith("by IP.")
    assert found.limits == ["mine: covered less by List (50% of its searches)"]


def test_an_answer_that_needs_a_strong_assumption_says_it_and_what_less_says():
    part = {"covered": 0.2, "difference": 0.05, "difference_low": -0.1, "difference_high": 0.2}
    found = verdict(of("PBM"), of("IP", **part))
    assert (
        ", if users follow a position-based model (PBM). IP, which assumes less, " in found.answer
    )
    assert "covers 20% of its searches; there it is 0.050 more" in found.answer
    assert "which may be chance." in found.answer
    alone = verdict(of("PBM"), of("IP", **NOTHING))
    assert alone.answer.endswith("No estimator that assumes less has enough support to check it.")


def test_estimators_that_assume_as_little_and_differ_leave_it_open():
    found = verdict(
        of("PBM"), of("DR", value=0.6, difference=0.1), of("Item"),
        contradictions=[apart("DR", "PBM", -0.2)],
    )  # fmt: skip
    assert found.answer == (
        "What mine would have earned depends on the users: PBM says 0.80 and DR says 0.60 "
        "clicks per search in the first 3 positions. All say that it is more than the log's ranker "
        "earned (0.50)."
    )
    assert found.next == [
        "see which of them predicts this log: `logeval replay validate 'my log' --positions 3 "
        "-e PBM -e DR`"
    ]
    against = verdict(
        of("PBM"), of("DR", value=0.4, difference=-0.1),
        contradictions=[apart("DR", "PBM", -0.4)],
    )  # fmt: skip
    assert "All say" not in against.answer
    assert "The log's ranker earned 0.50." in against.answer


def test_an_estimator_that_assumes_more_and_differs_is_wrong():
    found = verdict(of("IP"), of("PBM", value=1.0), contradictions=[apart("PBM", "IP", 0.2)])
    assert found.answer.endswith("by IP.")
    assert found.because[1] == (
        "PBM says 0.20 more, which chance does not explain: here it does not hold that users "
        "follow a position-based model (PBM)."
    )
    assert "agree" not in found.because[0]


DCM_BEST = {"dcm": -0.3, "ubm": -0.31, "dbn": -0.32, "pbm": -0.4}


def test_believed_is_dr_with_the_model_that_predicts_best_and_others_confirm_nothing():
    found = verdict(of("IP"), of("PBM"), of("DR(dcm)"), predicting=DCM_BEST)
    assert ", if users follow a DCM." in found.answer
    assert not any("agree" in line for line in found.because)
    # IP and PBM are of other users than a DCM: they neither answer nor leave it open
    found = verdict(
        of("IP", value=1.0), of("DR(dcm)"), predicting=DCM_BEST,
        contradictions=[apart("IP", "DR(dcm)", 0.2)],
    )  # fmt: skip
    assert found.answer.startswith("mine would have earned 0.80 clicks")
    assert found.because[1].startswith("IP says 0.20 more, which chance does not explain")


def test_what_is_refuted_for_one_target_answers_no_other():
    rows = [
        of("IP", "a"),
        of("Prefix", "a", value=0.6),
        of("IP", "b"),
        of("Prefix", "b", **NOTHING),
    ]
    found = verdict(*rows, contradictions=[apart("IP", "Prefix", 0.2, "a")])
    assert found.answer.startswith("a would have earned 0.60 clicks")
    assert found.limits[0] == (
        "b: nothing can be said. IP cannot be believed here: of a Prefix, which assumes less, says "
        "something else, by more than chance"
    )
    # also the one with the best click model: Prefix is right wherever it is, and IP of other users
    rows += [of("DR(dcm)", "a"), of("DR(dcm)", "b")]
    found = verdict(
        *rows, contradictions=[apart("DR(dcm)", "Prefix", 0.2, "a")], predicting=DCM_BEST
    )
    assert "by Prefix." in found.answer
    assert found.limits[0].startswith("b: nothing can be said. DR(dcm) cannot be believed here")


def test_queries_without_support_are_named_the_most_frequent_first():
    lost = [{**NOTHING, "serps": n} for n in (10, 30, 20, 40)]
    found = verdict(of("IP", covered=0.9, queries=[{"serps": 900}, *lost]))
    assert found.limits == [
        "mine: not covered are 4 of 5 queries (10% of its searches), as the log has shown too "
        "little of what it shows: 5 (25%, up to K = 1), 3 (25%, up to K = 1), 4 (25%, up to K = 1) "
        "and 1 more"
    ]


def test_a_target_that_is_mostly_not_covered_says_at_how_many_positions_it_would_be():
    lost = {**NOTHING, "serps": 500, "supported_positions": 2}
    found = verdict(of("IP", covered=0.5, serps=500, queries=[{"serps": 500}, lost]))
    assert found.next == ["positions=2 covers 100% of the searches of mine"]


@pytest.mark.parametrize(
    ("serps", "said"),
    [
        (1000, ""),
        (940, "On 1 of the 1,000 queries of the log (94% of its searches) only: "),
        (1, "On 1 of the 1,000 queries of the log (0.10% of its searches) only: "),
    ],
)
def test_a_target_of_few_queries_says_so_in_the_answer(serps, said):
    found = verdict(of("IP", serps=serps, queries=[{}]), log_queries=1000, log_serps=1000)
    assert found.answer.startswith(f"{said}mine would have earned")


def test_a_target_of_which_nothing_can_be_said_does_not_stop_the_others():
    found = verdict(of("IP", target="a"), of("IP", target="b", **NOTHING))
    assert found.answer.startswith("a would have earned")
    assert found.limits == [
        "b: nothing can be said. Of no query the log has shown enough of it: the largest support "
        "is 25%"
    ]


def test_of_several_targets_the_largest_comes_first_and_the_others_have_a_line():
    found = verdict(
        of("IP", target="a"),
        of("IP", target="best:dcm", value=0.9, difference=0.4, difference_low=0.3,
           difference_high=0.5),
        of("IP", target="logged", value=0.5, difference=0.0),
    )  # fmt: skip
    assert found.answer.startswith(
        "Of 3 rankers best:dcm has the largest value. best:dcm, which was chosen on these clicks "
        "and so is valued too high, would have earned 0.90 clicks"
    )
    assert found.others == [
        "a 0.80, 0.30 more than the log's ranker (95% interval 0.25 to 0.35), by IP",
        "logged 0.50",
    ]
    assert found.because[0].startswith("best:dcm and a: IP assumes least")
    assert found.next[0].startswith("make the ranker from one part of the log")


def test_the_logger_itself_is_called_so():
    found = verdict(of("IP", target="logged", value=0.5, difference=0.0))
    assert found.answer == (
        "logged would have earned what the log's ranker earned: 0.50 clicks per search in the "
        "first 3 positions."
    )
    assert found.because == []


def test_what_was_never_shown_clipped_weights_and_the_truth_are_said():
    found = verdict(of("IP", support=0.9, clipped=0.02, truth=0.7, truth_low=0.66,
                       truth_high=0.74, positions=1))  # fmt: skip
    assert "in the first position, 0.30 more" in found.answer
    assert [line.partition(": ")[2] for line in found.limits] == [
        "10.0% of what it shows in these queries was never shown and counts as no clicks, so its "
        "value is rather too low",
        "2.0% of the weights of IP are clipped, which lowers its value",
        "its own clicks were 0.70 per search (0.66 to 0.74), which differs by more than chance "
        "from IP (0.75 to 0.85)",
    ]


def test_without_rounds_there_is_no_interval_and_it_is_said():
    gone = dict.fromkeys(("low", "high", "difference_low", "difference_high"), np.nan)
    assert "0.30 more than the log's ranker (no interval)" in verdict(of("IP", **gone)).answer


def test_notes_are_among_the_limits_and_lines_fit_the_width():
    fact = Fact("unknown-queries", "mine", value=3, threshold=9, more={"queries": ["7"]})
    found = verdict(of("IP"), facts=[fact])
    assert found.limits == ["mine: 3 of its 9 queries are not in the log and are left out, as 7"]
    assert max(map(len, found.text().splitlines())) <= 80
    assert found.text(40).splitlines()[0] == "mine would have earned 0.80 clicks per"
    assert "What limits this:\n- mine: 3 of its" in found.text()
    assert "nan" not in found.text()
