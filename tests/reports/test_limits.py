"""What is said to limit an answer: curves that still rise, and elimination that has not begun."""

import math

import numpy as np
import pandas as pd
import pytest

from logeval.reports.headline import flattens, late_slope
from logeval.reports.verdict import verdict
from tests.reports.tables import problem, rows, runs_of

FINAL = [10.0 + q for q in range(12)]


def half(share):
    """A curve that has this share of its regret after half of the steps."""
    return (0.01, share, 1.0)


def limits(*frames, about, **options):
    return [text for text in verdict(runs_of(*frames, **options)).limits if about in text]


def curve(t, regret):
    return pd.DataFrame({"t": t, "regret": regret})


# -- curves -----------------------------------------------------------------------------------


def test_a_straight_line_has_slope_1_a_square_root_059_and_a_logarithm_less():
    t = np.arange(1, 5001)
    assert late_slope(curve(t, 0.3 * t)) == pytest.approx(1.0)
    assert late_slope(curve(t, np.sqrt(t))) == pytest.approx(2 - math.sqrt(2))
    assert late_slope(curve(t, np.log(t))) == pytest.approx(math.log(4) / math.log(5000))
    assert late_slope(curve(t, np.minimum(t, 2500))) == 0.0


def test_the_slope_is_measured_from_the_checkpoint_nearest_the_middle():
    # 60 steps are nearer to 50 than 30: 4 of 10 in the last 40 of 100 steps
    assert late_slope(curve([30, 60, 100], [1.0, 6.0, 10.0])) == pytest.approx(1.0)
    assert late_slope(curve([45, 60, 100], [8.9, 9.0, 10.0])) == pytest.approx(0.2)


@pytest.mark.parametrize(("middle", "known"), [(24, False), (25, True), (75, True), (76, False)])
def test_without_a_checkpoint_near_the_middle_there_is_no_slope(middle, known):
    found = late_slope(curve([1, middle, 100], [0.0, 4.0, 8.0]))
    assert (found == found) == known
    if known:
        assert found == pytest.approx(4.0 / (100 - middle) / 0.08)


def test_a_curve_that_begins_late_has_twice_the_average_slope():
    assert late_slope(curve([1, 50, 100], [0.0, 0.0, 8.0])) == pytest.approx(2.0)


def test_without_regret_there_is_no_slope():
    assert math.isnan(late_slope(curve([1, 50, 100], [0.0, 0.0, 0.0])))
    assert late_slope(curve([1, 50, 100], [0.0, 1e-7, 2e-7])) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("share", "rises"), [(0.5, True), (0.74, True), (0.75, True), (0.76, False)]
)
def test_a_curve_rises_that_costs_half_of_the_average_or_more_in_the_end(share, rises):
    """A quarter of the regret in the last half of the steps is half of the average per step."""
    found = limits(rows({"A": FINAL}, shape=half(share)), about="still rise")
    assert len(found) == rises
    curves = runs_of(rows({"A": FINAL}, shape=half(share))).curves("DCM")
    assert flattens(curves) == (not rises)


def test_curves_flatten_where_one_does_and_the_oracle_is_none():
    flat, line = curve([1, 50, 100], [5.0, 9.0, 10.0]), curve([1, 50, 100], [0.1, 5.0, 10.0])
    assert flattens({"A": flat, "B": line})
    assert not flattens({"A": line})
    assert not flattens({"A": line, "Oracle": flat, "Oracle(order=items)": flat})


def test_the_curves_that_rise_are_named_the_flattest_first():
    frames = [rows({p: FINAL}, shape=half(s)) for p, s in (("A", 0.5), ("B", 0.7), ("C", 0.9))]
    (text,) = limits(*frames, about="still rise")
    assert text == (
        "curves still rise at 100 searches; with more the order may change. Regret per search in "
        "the second half, compared with the average: B 60% and A 100%"
    )


def test_four_curves_that_rise_are_named_and_the_others_counted():
    shares = dict(zip("ABCDE", (0.5, 0.52, 0.54, 0.56, 0.58), strict=True))
    frames = [rows({p: FINAL}, shape=half(s)) for p, s in shares.items()]
    (text,) = limits(*frames, about="still rise")
    assert text.endswith("average: E 84%, D 88%, C 92%, B 96% and 1 more")
    (text,) = limits(*frames[1:], about="still rise")
    assert text.endswith("average: E 84%, D 88%, C 92% and B 96%")


def test_policies_that_do_not_learn_are_not_expected_to_flatten():
    table = {"Random": FINAL, "Oracle(order=items)": FINAL, "A": FINAL}
    (text,) = limits(rows(table, shape=half(0.5)), about="still rise")
    assert text.endswith("average: A 100%")


def test_a_policy_that_rises_on_several_simulators_is_named_once():
    frames = [
        rows({"A": FINAL}, shape=half(0.6)),
        rows({"A": FINAL}, simulator="PBM", shape=half(0.7)),
        rows({"B": FINAL}, simulator="PBM", track="rank1", shape=half(0.5)),
        rows({"A": FINAL}, simulator="UBM", shape=half(0.9)),
    ]
    (text,) = limits(*frames, about="still rise")
    assert text.endswith("average: A 60% to 80% and B 100%")


def test_what_is_said_of_several_simulators_is_said_once():
    frames = [rows({"A": [5.0, 6.0], "B": [7.0, 9.0]}, simulator=s) for s in ("DCM", "PBM")]
    notes = ["DCM: lists are short", "PBM: lists are short", "lists: of one length"]
    found = verdict(runs_of(*frames, notes=notes)).limits
    assert "DCM and PBM: lists are short" in found
    assert "lists: of one length" in found
    (few,) = [text for text in found if "few" in text]
    assert few.startswith("DCM and PBM: 2 queries are few")


def test_free_observations_are_said_where_policies_are_compared_with_the_ranker():
    frame = rows({"dcmKL-UCB(init=sample)": FINAL, "TopRank": FINAL, "CascadeKL-UCB": FINAL})
    facts = [problem(f"{q}@0", ranker=0.3) for q in range(12)]
    (text,) = limits(frame, about="free observation", problems=facts)
    assert text.startswith("dcmKL-UCB(init=sample) begins with one free observation of every item")
    assert not limits(
        frame, about="free observation", problems=[problem(f"{q}@0") for q in range(12)]
    )


def test_what_limits_the_answer_comes_in_one_order():
    left = {"rows_left": 8, "columns_left": 4}
    frame = rows({"Rank1ElimKL": [5.0, 6.0]}, "PBM", "rank1", half(0.5), **left)
    runs = runs_of(frame, problems=[size("0@0"), size("1@0")], notes=["a note"])
    found = verdict(runs).limits
    assert ["few" in found[0], "still rise" in found[1], "eliminated" in found[2]] == [True] * 3
    assert found[3:] == ["a note"]


# -- elimination ------------------------------------------------------------------------------


def size(query, rows=8, columns=4, simulator="PBM"):
    measures = {"mu": 0.1, "p_max": 0.5, "gamma": 0.5, "bound": 1e6}
    return problem(query, simulator, "rank1", items=rows, positions=columns, **measures)


def pair_rows(left, policy="Rank1ElimKL", simulator="PBM"):
    """Runs of as many queries as there are (rows, columns) left at the end."""
    frame = rows({policy: [5.0] * len(left)}, simulator=simulator, track="rank1")
    rows_left, columns_left = (np.repeat([pair[i] for pair in left], 3) for i in (0, 1))
    return frame.assign(rows_left=rows_left, columns_left=columns_left)


ALL = (8, 4)
SO_FAR = "; so far its regret is that of exploring, and says nothing about later"


def test_the_reason_that_nothing_was_eliminated_for_one_query():
    # 16 log 100 = 73.7: 74 observations of each of 8 rows and 4 columns
    (text,) = limits(pair_rows([ALL]), about="eliminated nothing", problems=[size("0@0")])
    assert text == (
        "Rank1ElimKL eliminated nothing: its first stage, during which it cannot eliminate "
        f"anything, takes 888 searches, and there were 100{SO_FAR}"
    )


def test_the_reason_for_queries_of_several_sizes():
    # of 1 row and 0 columns the first stage takes 74 steps, which were there
    sizes = [size("0@0"), size("1@0", 1, 0)]
    (text,) = limits(pair_rows([ALL, (1, 0)]), about="eliminated nothing", problems=sizes)
    assert text == (
        "Rank1ElimKL eliminated nothing: its first stage, during which it cannot eliminate "
        "anything, takes 74 to 888 searches and ends within 100 on 1 of 2 queries; where its "
        f"bounds are still too wide, the next stage takes four times as many{SO_FAR}"
    )


def test_a_first_stage_of_just_as_many_steps_has_ended():
    # 2 log 100 = 9.2: 10 observations of each of 5 x 2 pairs
    frame = pair_rows([(5, 2)], policy="UCB1Elim")
    (text,) = limits(frame, about="eliminated nothing", problems=[size("0@0", 5, 2)])
    assert "takes 100 searches, and there were 100; where its bounds are still too wide" in text


def test_a_policy_whose_first_stage_is_unknown_gives_no_reason():
    frame = pair_rows([ALL], policy="UCB1")
    (text,) = limits(frame, about="eliminated nothing", problems=[size("0@0")])
    assert text == "UCB1 eliminated nothing in 100 searches"


@pytest.mark.parametrize("left", [(7, 4), (8, 3), (1, 1)])
def test_a_row_or_a_column_less_is_eliminated(left):
    assert not limits(pair_rows([left]), about="eliminated nothing", problems=[size("0@0")])


@pytest.mark.parametrize(
    ("left", "said"),
    [([ALL, ALL, ALL], ""), ([ALL, ALL, (2, 2)], " in 2 of 3 runs"), ([ALL, (2, 2), (2, 2)], None)],
)
def test_elimination_is_missed_where_half_of_the_runs_have_none(left, said):
    sizes = [size(f"{q}@0") for q in range(3)]
    found = limits(pair_rows(left), about="eliminated nothing", problems=sizes)
    if said is None:
        assert found == []
    else:
        assert found[0].startswith(f"Rank1ElimKL eliminated nothing{said}: its first stage")


def test_elimination_is_judged_at_the_end():
    frame = pair_rows([ALL]).assign(rows_left=[8, 8, 2])
    assert not limits(frame, about="eliminated nothing", problems=[size("0@0")])


def test_elimination_is_judged_by_the_sizes_of_the_simulator():
    frames = pair_rows([ALL]), pair_rows([ALL], simulator="UBM")
    sizes = [size("0@0"), size("0@0", 16, 4, simulator="UBM")]
    (text,) = limits(*frames, about="eliminated nothing", problems=sizes)
    assert text.startswith("Rank1ElimKL eliminated nothing on PBM: its first stage")


def test_policies_without_elimination_are_not_reproached():
    assert not limits(rows({"A": FINAL}), about="eliminated nothing", problems=[size("0@0")])
