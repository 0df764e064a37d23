"""The answer itself, on tables whose answer is evident: who, how much, and against the ranker."""

import re

import numpy as np
import pytest

from logeval.reports.headline import break_even_text
from logeval.reports.verdict import verdict
from logeval.running.words import out_of, searches
from tests.reports.tables import around, problem, rows, runs_of

BASE = around(10.0, 3.0)


def shifted(by, spread=0.5, seed=1):
    return [a + b for a, b in zip(BASE, around(by, spread, seed=seed), strict=True)]


def near(by=0.1, seed=1):
    """Cannot be told apart from BASE."""
    return shifted(by, spread=2.0, seed=seed)


def on(**tables):
    """The answer on simulators with these tables."""
    return verdict(runs_of(*(rows(table, simulator=n) for n, table in tables.items()))).answer


CLEAR = {"A": BASE, "B": shifted(5.0)}
TIED = {"A": BASE, "B": near()}
TIED_B = {"B": BASE, "A": near()}
# 10 of 100 are lost by A in every table, and 15 by B in the first
LOST = (
    "In 100 searches of a query it loses 100 of 1,000 satisfied searches that the best list would "
)
LOST += "have brought"


# -- one simulator ----------------------------------------------------------------------------


def test_a_clear_winner():
    assert on(DCM=CLEAR) == (f"A loses least on DCM. {LOST}; B, the next, loses 150 of 1,000.")


def test_a_tie_is_said_before_the_numbers():
    assert on(DCM=TIED) == (
        "A loses least on average on DCM, but it cannot be told apart from B. "
        f"{LOST}; B, the next, loses 101 of 1,000."
    )


def test_one_run_is_not_tested():
    assert on(DCM={"A": [10.0], "B": [20.0]}).startswith(
        f"A loses least on DCM. Whether that is chance cannot be tested here. {LOST}"
    )


def test_a_policy_alone():
    assert on(DCM={"A": BASE}) == f"Only A was run on DCM. {LOST}."


def test_what_is_counted_has_its_name():
    runs = runs_of(
        rows(CLEAR, simulator="PBM"),
        problems=[problem(f"{q}@0", "PBM", reward="clicks") for q in range(12)],
    )
    assert "it loses 100 of 1,000 clicks that" in verdict(runs).answer


# -- several simulators -----------------------------------------------------------------------


def test_simulators_that_agree():
    assert on(DCM=CLEAR, PBM=CLEAR) == (
        f"A loses least on DCM and PBM. {LOST}; B, the next, loses 150 of 1,000."
    )


def test_losses_of_several_simulators_are_a_range():
    half = {"A": [x / 2 for x in BASE], "B": shifted(5.0)}
    assert "it loses 50 to 100 of 1,000 satisfied searches" in on(DCM=CLEAR, PBM=half)


def test_the_next_is_named_where_it_is_the_same_everywhere():
    three = {**CLEAR, "C": shifted(20.0, seed=2)}
    other = {"A": BASE, "C": shifted(5.0), "B": shifted(20.0, seed=2)}
    assert "; B, the next," in on(DCM=three, PBM=three)
    assert "the next" not in on(DCM=three, PBM=other)


def test_simulators_that_contradict_each_other():
    other = {"B": BASE, "A": shifted(7.0)}
    assert on(DCM=CLEAR, PBM=other) == (
        "The answer depends on the simulator: the best policy is A on DCM and B on PBM."
    )


def test_a_winner_on_one_that_is_tied_on_others():
    found = on(DCM=CLEAR, PBM=TIED, UBM=TIED)
    assert found.startswith(
        "A loses least on average on DCM, PBM and UBM, but on PBM and UBM it cannot be told apart "
        "from B. In 100"
    )


def test_ties_everywhere_have_no_winner():
    assert on(DCM=TIED, PBM=TIED).startswith(
        "There is no winner on DCM and PBM: any of A and B may be best. In 100 searches of a query "
        "A loses "
    )


def test_other_means_within_chance():
    assert on(DCM=CLEAR, PBM=TIED_B).startswith(
        "There is no winner: A may be best; on average A loses least on DCM and B loses least on "
        "PBM. "
    )


def test_the_best_sets_are_named_where_they_have_nobody_in_common():
    ab = {"A": BASE, "B": near(), "C": shifted(30.0), "D": shifted(31.0)}
    cd = {"C": BASE, "D": near(), "A": shifted(30.0), "B": shifted(31.0)}
    assert on(DCM=ab, PBM=cd) == (
        "The answer depends on the simulator: the best policy is A and B on DCM and C and D on PBM."
    )


def test_what_cannot_be_tested_or_compared():
    one, other = {"A": [1.0], "B": [2.0]}, {"A": [2.0], "B": [1.0]}
    assert on(DCM=one, PBM=one).startswith("A loses least on DCM and PBM. Whether that")
    assert on(DCM=one, PBM=other) == (
        "Which policy loses least depends on the simulator (A on DCM and B on PBM). Whether "
        "that is chance cannot be tested here."
    )
    assert on(DCM={"A": BASE}, PBM={"B": BASE}) == (
        "DCM and PBM have no policy in common, so they cannot agree or contradict each other."
    )
    assert on(DCM={"A": BASE}, PBM={"A": BASE}).startswith("Only A was run on DCM and PBM.")


def test_many_simulators_are_counted():
    found = on(**dict.fromkeys(("DCM", "PBM", "UBM", "DBN", "CM"), CLEAR))
    assert found.startswith("A loses least on all 5 simulators.")


# -- tracks -----------------------------------------------------------------------------------


def tracks(lists, pairs):
    return verdict(runs_of(rows(lists), rows(pairs, track="rank1"))).answer


def test_a_track_where_nothing_competes_is_no_answer():
    """Random and today's ranker do not learn: beside them one policy is no contest."""
    pairs = {"Rank1ElimKL": BASE, "Random": shifted(50.0), "Logged(lists=top)": shifted(40.0)}
    assert "Rank1ElimKL" not in tracks(CLEAR, pairs)


def test_two_tracks_that_are_contested_have_an_answer_each():
    found = tracks(CLEAR, {"Rank1ElimKL": BASE, "UCB1Elim": shifted(5.0)})
    assert "Rank1ElimKL loses least on DCM. " in found
    assert "that the best pair would have brought; UCB1Elim, the next, loses 150" in found
    assert "A loses least on DCM. " in found


# -- today's ranker ---------------------------------------------------------------------------


def against(ranker, shape=(0.01, 0.5, 1.0), **tables):
    frames = [rows(table, simulator=n, shape=shape) for n, table in tables.items()]
    facts = [problem(f"{q}@0", n, ranker=ranker) for n in tables for q in range(12)]
    return verdict(runs_of(*frames, problems=facts)).answer


def test_a_policy_that_is_ahead_from_the_first_search():
    # A earns .9 in every step
    found = against(0.5, DCM=CLEAR)
    assert "A is ahead of today's ranker from the first search." in found
    assert (
        "At the end a search brings 0.90 satisfied searches (today's 0.50, the best list 1.00)."
        in (found)
    )


def test_a_policy_that_never_passes_the_ranker():
    found = against(0.95, DCM=CLEAR)
    assert "A does not pass today's ranker within 100 searches of a query (" in found
    assert "satisfied searches behind before)" in found


def test_a_policy_that_pays_in_the_end():
    # regret 9 of 10 in the first half: behind the ranker's .85 until then
    found = against(0.85, shape=(0.05, 0.9, 1.0), DCM=CLEAR)
    assert "A passes today's ranker after" in found
    assert "95% interval" in found


def test_simulators_have_a_clause_each_or_are_counted():
    found = against(0.5, DCM=CLEAR, PBM=CLEAR)
    assert "A is ahead of today's ranker from the first search on DCM and on PBM." in (found)
    never = against(0.97, DCM=CLEAR, PBM=CLEAR)
    assert re.search(
        r"A does not pass today's ranker within 100 searches of a query on DCM \([^()]*\) and on "
        r"PBM \([^()]*\)\.", never
    )  # fmt: skip
    many = against(0.5, **dict.fromkeys(("DCM", "PBM", "UBM", "DBN"), CLEAR))
    assert "A passes today's ranker on 4 of 4 simulators, from the first search." in many
    late = {"ranker": 0.85, "shape": (0.05, 0.9, 1.0)}
    less = {"A": [0.8 * x for x in BASE], "B": shifted(5.0)}
    found = against(**late, DCM=CLEAR, PBM=less)
    assert re.search(
        r"A passes today's ranker after \d+ to \d+ searches of a query on DCM \([^()]*\) and after "
        r"\d+ to \d+ on PBM \([^()]*\)\.", found
    )  # fmt: skip
    many = against(**late, **dict.fromkeys(("DCM", "PBM", "UBM", "DBN"), CLEAR))
    assert re.search(r"on 4 of 4 simulators, after \d+ to \d+ searches of a query[.;]", many)


def test_nothing_is_said_of_a_ranker_that_is_not_known():
    assert "ranker" not in on(DCM=CLEAR)


class Row:
    """A row of ``Runs.against_ranker``."""

    unit = "clicks"

    def __init__(self, at, low, high, cost=0.0):
        self.break_even, self.break_even_low, self.break_even_high = at, low, high
        self.cost = cost


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (Row(0.0, 0.0, 0.0), "is ahead of today's ranker from the first search"),
        (
            Row(0.0, 0.0, 83.1),
            "passes today's ranker after 0 to 84 searches of a query (95% interval)",
        ),
        (
            Row(0.0, 0.0, np.inf),
            "passes today's ranker after 0 to beyond 1,000 searches of a query (95% interval)",
        ),
        (
            Row(421.3, 117.0, 2412.2, 3.2),
            "passes today's ranker after 117 to 2,413 searches of a query (95% interval; up to "
            "3.20 clicks behind before)",
        ),
        (
            Row(421.3, 117.0, np.inf, 3.2),
            "passes today's ranker after 117 to beyond 1,000 searches of a query (95% interval; up "
            "to 3.20 clicks behind before)",
        ),
        (
            Row(np.inf, 700.0, np.inf, 30.0),
            "passes today's ranker after 700 to beyond 1,000 searches of a query (95% interval; up "
            "to 30.0 clicks behind before)",
        ),
        (
            Row(np.inf, np.inf, np.inf, 30.0),
            "does not pass today's ranker within 1,000 searches of a query (up to 30.0 clicks "
            "behind before)",
        ),
        (
            Row(10.0, np.nan, np.nan, 1.0),
            "passes today's ranker after 10 searches of a query (up to 1.00 clicks behind before)",
        ),
    ],
)
def test_break_even_in_words(row, text):
    assert break_even_text(row, 1000) == text


def test_shares_as_people_count():
    assert out_of([0.0694]) == "69 of 1,000"
    assert out_of([0.3, 0.1, 0.2]) == "100 to 300 of 1,000"
    assert out_of([0.0011]) == "1 of 1,000"  # as the losses beside it
    assert out_of([0.00002]) == "20 of 1,000,000"
    assert out_of([0.0]) == "0 of 1,000"
    assert (searches(0.2), searches(1234.5), searches(np.inf, "never")) == ("1", "1,235", "never")
