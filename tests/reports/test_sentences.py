"""What the verdict says of tables whose answer is evident, sentence by sentence."""

import math

import pytest

from logeval.reports.verdict import Verdict, verdict
from logeval.running.words import interval, p_value
from tests.reports.tables import around, rows, runs_of

BASE = around(10.0, 3.0)


def shifted(by, spread=0.5, seed=1):
    return [a + b for a, b in zip(BASE, around(by, spread, seed=seed), strict=True)]


def near(by=0.1, seed=1):
    """Cannot be told apart from BASE."""
    return shifted(by, spread=2.0, seed=seed)


def below_level(p, sign=1.0):
    """Regrets beside BASE whose paired t-test (12 queries) has this p."""
    t = {0.04: 2.3281, 0.06: 2.0957}[p]
    return [a + sign * d for a, d in zip(BASE, around(t / math.sqrt(11), 1.0), strict=True)]


def lost(runs, policy="A"):
    row = runs.summary().set_index("policy").loc[policy]
    return (
        f"10.0 satisfied searches in 100 searches (95% interval {interval(row['low'], row['high'])}"
        "), 10.0% of what the best list would have brought"
    )


# -- the details of one simulator -------------------------------------------------------------


def first(runs):
    return verdict(runs).details[0]


def test_the_winner_is_said_with_its_regret_interval_and_share():
    runs = runs_of(rows({"A": BASE, "B": shifted(5.0)}))
    assert first(runs).startswith(f"On DCM A lost less than every other policy: {lost(runs)}. ")
    low, high = runs.summary()[["low", "high"]].iloc[0]
    assert low < 10.0 < high


def test_nothing_is_said_of_a_share_where_there_is_no_optimum():
    runs = runs_of(rows({"A": BASE, "B": shifted(5.0)}, optimal_reward=0.0))
    assert "the best list would" not in first(runs)


def test_a_regret_larger_than_the_optimum_is_said():
    runs = runs_of(rows({"A": BASE, "B": shifted(5.0)}, optimal_reward=5.0))
    assert "200.0% of what the best list would have brought" in first(runs)


def test_one_run_is_not_tested():
    found = verdict(runs_of(rows({"A": [1.0], "B": [2.0]})))
    assert found.details == [
        "On DCM A lost least, 1.00 satisfied searches in 100 searches, 1.0% of what the best list "
        "would have brought. Whether that is chance cannot be tested here. B lost 1.00 more than A."
    ]


def test_a_policy_alone_is_compared_with_nothing():
    runs = runs_of(rows({"A": BASE}))
    assert first(runs) == f"On DCM only A was run; it lost {lost(runs)}."


def test_a_tie_of_two_and_of_three():
    two = runs_of(rows({"A": BASE, "B": near()}))
    assert first(two).startswith(
        "On DCM there is no winner: B cannot be told apart from A, which lost least on average, "
        f"{lost(two)}. "
    )
    three = runs_of(rows({"A": BASE, "B": near(), "C": near(0.2, seed=2)}))
    assert first(three).startswith(
        "On DCM there is no winner: none of the 3 policies can be told apart from A, which lost "
        f"least on average, {lost(three)}. "
    )


def test_some_are_tied_and_others_are_worse():
    table = {"A": BASE, "B": near(), "C": near(0.2, seed=2), "D": shifted(30.0), "E": shifted(40.0)}
    runs = runs_of(rows(table))
    assert first(runs).startswith(
        f"On DCM A lost least on average, {lost(runs)}. It cannot be told apart from B and C; it "
        "lost less than D and E. "
    )


def test_only_the_oracle():
    runs = runs_of(rows({"Oracle": [0.0] * 12}))
    assert verdict(runs) == Verdict("Only the Oracle was run: there is nothing to compare.")
    both = runs_of(rows({"Oracle": [0.0] * 12}), rows({"A": BASE}, simulator="PBM"))
    assert verdict(both).answer.startswith("Only A was run on PBM")  # DCM has nobody to speak of


# -- the best against the others --------------------------------------------------------------


def test_the_comparisons_in_one_line():
    runs = runs_of(rows({"A": BASE, "B": shifted(5.0), "RankedKL-UCB": shifted(20.0, seed=2)}))
    (text,) = verdict(runs).details
    b, c = (row for row in runs.compare().itertuples() if row.better == "A")
    assert text.partition("brought. ")[2] == (
        f"B lost 5.00 more than A (95% interval {interval(b.low, b.high)}, {p_value(b.p)}), "
        f"{b.ratio:.2f} times as much on a typical query; RankedKL-UCB lost 20.0 more (95% "
        f"interval {interval(c.low, c.high)}, {p_value(c.p)}), {c.ratio:.2f} times as much on a "
        "typical query. A was best on 12 of 12 queries."
    )


@pytest.mark.parametrize("policy", ["dcmKL-UCB", "RankedKL-UCB", "RankedExp3", "Rank1ElimKL"])
def test_the_policies_that_are_always_named(policy):
    table = {"A": BASE, "B": shifted(5.0), policy: shifted(9.0, seed=2)}
    (text,) = verdict(runs_of(rows(table))).details
    assert f"; {policy} lost 9.00 more" in text


def test_a_variant_of_the_best_is_not_named_again():
    table = {"RankedExp3(gamma=0.3)": BASE, "B": shifted(5.0), "RankedExp3": shifted(9.0, seed=2)}
    (text,) = verdict(runs_of(rows(table))).details
    assert "B lost 5.00 more than RankedExp3(gamma=0.3)" in text
    assert "RankedExp3 lost" not in text


def test_with_one_query_nothing_is_said_of_queries():
    frame = rows({"A": BASE, "B": shifted(5.0)})
    one = frame.assign(run=frame["query"].str.partition("@")[0].astype(int), query="7@0")
    (text,) = verdict(runs_of(one)).details
    assert text.endswith("p < 0.0001).")
    assert "typical query" not in text
    two = verdict(runs_of(rows({"A": [10.0, 12.0], "B": [20.0, 30.0]}))).details[0]
    assert two.endswith(" A was best on 2 of 2 queries.")


def test_a_rival_that_is_best_on_as_many_queries_is_said_and_on_fewer_not():
    # of C, which is best on none, nothing is said
    a, c = [10.0] * 4, [50.0] * 4
    (text,) = verdict(runs_of(rows({"A": a, "B": [9.0, 9.0, 30.0, 30.0], "C": c}))).details
    assert text.endswith(" A was best on 2 of 4 queries, B on 2.")
    (text,) = verdict(runs_of(rows({"A": a, "B": [9.0, 30.0, 30.0, 30.0], "C": c}))).details
    assert text.endswith(" A was best on 3 of 4 queries.")
    # the rival is the best of the others, not the next in the mean
    (text,) = verdict(runs_of(rows({"A": a, "C": [12.0] * 4, "B": [9, 9, 9, 90]}))).details
    assert text.endswith(" A was best on 1 of 4 queries, B on 3.")


def test_a_ratio_is_called_clear_only_where_the_mean_is_not():
    a = [2.0**i for i in range(12)]
    wobble = [1.02 if i % 2 else 0.98 for i in range(12)]
    runs = runs_of(rows({"A": a, "B": [1.5 * x * w for x, w in zip(a, wobble, strict=True)]}))
    pair = runs.compare().iloc[0]
    assert pair["p"] > 0.05
    ends = interval(pair["ratio_low"], pair["ratio_high"])
    assert (
        f"which is clear ({ends}, p < 0.0001) where the average is not."
        in (verdict(runs).details[0])
    )
    both = runs_of(rows({"A": BASE, "B": shifted(5.0)}))
    assert both.compare().iloc[0]["p"] < 0.05
    assert "which is clear" not in verdict(both).details[0]
    neither = runs_of(rows({"A": BASE, "B": near()}))
    assert neither.compare().iloc[0]["ratio_p"] > 0.05
    assert "which is clear" not in verdict(neither).details[0]


# -- several simulators -----------------------------------------------------------------------


def on(**tables):
    """The verdict on simulators with these tables."""
    return verdict(runs_of(*(rows(table, simulator=name) for name, table in tables.items())))


CLEAR = {"A": BASE, "B": shifted(5.0)}


@pytest.mark.parametrize(("p", "said"), [(0.04, True), (0.06, False)])
def test_policies_change_places_where_both_tests_are_clear_at_five_percent(p, said):
    other = {"A": BASE, "B": below_level(p)}
    runs = runs_of(rows(other), rows({"A": below_level(p), "B": BASE}, simulator="PBM"))
    assert runs.compare()["p"].to_list() == pytest.approx([p, p], rel=0.01)
    found = [text for text in verdict(runs).details if "change places" in text]
    assert len(found) == said
    half = on(DCM=other, PBM={"A": shifted(5.0), "B": BASE})
    assert any("change places" in text for text in half.details) == said


def test_of_many_pairs_that_change_places_three_are_named():
    regrets = [BASE, shifted(5.0), shifted(20.0, seed=2), shifted(40.0, seed=3)]
    for names, more in (("ABC", None), ("ABCD", "3 more pairs change places likewise.")):
        up = dict(zip(names, regrets, strict=False))
        down = dict(zip(names[::-1], regrets, strict=False))
        found = [text for text in on(DCM=up, PBM=down).details if "change places" in text]
        assert found[:1] == [
            "A and B change places: B lost 5.00 more on DCM (p < 0.0001), A lost "
            f"{'20.0' if more else '15.0'} more on PBM (p < 0.0001)."
        ]
        assert [text.partition(":")[0] for text in found[1:3]] == [
            "A and C change places",
            "A and D change places" if more else "B and C change places",
        ]
        assert found[3:] == ([more] if more else [])


def test_one_more_pair_that_changes_places_is_one():
    """The order C D A B turns four of the six pairs of A B C D around."""
    regrets = [BASE, shifted(5.0), shifted(20.0, seed=2), shifted(40.0, seed=3)]
    up, other = (dict(zip(names, regrets, strict=True)) for names in ("ABCD", "CDAB"))
    found = [text for text in on(DCM=up, PBM=other).details if "change" in text]
    assert [text.partition(":")[0] for text in found] == [
        "A and C change places", "A and D change places", "B and C change places",
        "1 more pair changes places likewise.",
    ]  # fmt: skip


# -- several tracks ---------------------------------------------------------------------------


def top_pairs(lists, pairs):
    both = []
    for table, track in ((lists, "ranking"), (pairs, "rank1")):
        frame = rows(table, simulator="PBM", track=track, pair_optimal_reward=100.0)
        both.append(frame.assign(pair_regret=frame["regret"]))
    return verdict(runs_of(*both)).details


def test_lists_and_pairs_are_compared_at_the_best_position():
    found = top_pairs({"A": BASE, "B": shifted(9.0)}, {"Rank1ElimKL": shifted(60.0)})[-1]
    head, _, tail = found.rpartition(" (")
    assert head == (
        "On PBM, lists and single pairs compare by what they show at the most examined position: "
        "there A lost least, 10.0% of what the best pair would have brought; Rank1ElimKL lost "
        "60.0 percentage points more"
    )
    low, _, rest = tail.partition(" to ")
    high, _, p = rest.partition(", ")
    assert float(low) < 60.0 < float(high) < 100.0
    assert p == "p < 0.0001)."


def test_no_share_of_an_optimum_is_more_than_all_of_it():
    found = top_pairs({"A": BASE}, {"Rank1ElimKL": shifted(80.0, spread=30.0)})[-1]
    assert " to 100.0, p " in found


def test_a_pair_that_was_run_once_is_not_tested():
    found = top_pairs({"A": [10.0]}, {"Rank1ElimKL": [70.0]})[-1]
    assert found.endswith(
        "there A lost least, 10.0% of what the best pair would have brought; Rank1ElimKL lost 60.0 "
        "percentage points more."
    )


def test_of_the_other_track_the_mission_is_named_or_else_the_next():
    pairs = {"UCB1Elim": shifted(30.0), "Other": shifted(40.0), "Rank1ElimKL": shifted(60.0)}
    found = top_pairs({"A": BASE, "dcmKL-UCB": shifted(9.0)}, pairs)[-1]
    assert "Rank1ElimKL lost 60.0 percentage points more" in found
    assert not any(name in found for name in ("UCB1Elim", "Other", "dcmKL-UCB"))
    del pairs["Rank1ElimKL"]
    found = top_pairs({"A": BASE, "dcmKL-UCB": shifted(9.0)}, pairs)[-1]
    assert "UCB1Elim lost 30.0 percentage points more" in found
    assert "Other" not in found


def test_a_variant_of_the_mission_is_named_and_the_oracle_is_no_rival():
    pairs = {"UCB1Elim": shifted(30.0), "Rank1ElimKL(horizon=9)": shifted(60.0)}
    found = top_pairs({"A": BASE}, pairs)[-1]
    assert "; Rank1ElimKL(horizon=9) lost 60.0 percentage points more" in found
    assert "UCB1Elim" not in found
    oracle = top_pairs({"A": BASE, "B": shifted(9.0)}, {"Oracle": [0.0] * 12})
    assert not any("most examined position" in text for text in oracle)


def test_tracks_that_measured_no_pair_are_not_compared():
    found = verdict(runs_of(rows(CLEAR), rows({"Rank1ElimKL": BASE}, track="rank1")))
    assert not any("most examined position" in text for text in found.details)


# -- in the terminal --------------------------------------------------------------------------


def test_the_text_has_the_answer_then_trust_then_limits_then_details():
    found = Verdict("A wins.", ["they click alike"], ["few queries"], ["B lost more than A did."])
    assert found.text() == (
        "A wins.\nCan the simulators be believed?\n- they click alike\nWhat else limits this:\n"
        "- few queries\nDetails:\n- B lost more than A did."
    )
    assert Verdict("A wins.", details=["B lost more than A did."]).text(20) == (
        "A wins.\nDetails:\n- B lost more than A\n  did."
    )
    assert Verdict("A wins.").text() == "A wins."
    found = Verdict("An dcmKL-UCB", details=["a dcmKL-UCB"]).text(11)
    assert found == "An\ndcmKL-UCB\nDetails:\n- a\n  dcmKL-UCB"


def test_the_text_has_80_columns():
    assert Verdict("x" * 39 + " " + "y" * 40).text().count("\n") == 0
    assert Verdict("x" * 40 + " " + "y" * 40).text().count("\n") == 1


def test_tables_are_of_their_simulator_and_track():
    """The same policies in another order elsewhere do not enter what is said of one."""
    runs = runs_of(
        rows(CLEAR), rows({"B": BASE, "A": shifted(7.0)}, track="rank1"),
        rows({"B": BASE, "A": shifted(3.0)}, simulator="PBM"),
    )  # fmt: skip
    found = verdict(runs)
    (here,) = [text for text in found.details if text.startswith("On DCM (ranking)")]
    assert "B lost 5.00 more than A" in here
    (there,) = [text for text in found.details if text.startswith("On PBM (ranking)")]
    assert "A lost 3.00 more than B" in there
    (pairs,) = [text for text in found.details if text.startswith("On DCM (rank1)")]
    assert "A lost 7.00 more than B" in pairs
