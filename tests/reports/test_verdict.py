"""The verdict on tables whose answer is evident."""

import re

import pytest

from logeval.clicks.fitting import NO_CLICK
from logeval.policies.pairs import UCB1Elim
from logeval.policies.rank1elim import Rank1ElimKL
from logeval.reports.headline import late_slope
from logeval.reports.verdict import verdict
from logeval.running.words import interval, joined, number, p_value
from tests.reports.tables import around, problem, rows, runs_of

BASE = around(10.0, 3.0)


def shifted(by, spread=0.5, seed=1):
    return [a + b for a, b in zip(BASE, around(by, spread, seed=seed), strict=True)]


def test_a_clear_winner_is_named_with_difference_interval_and_p():
    runs = runs_of(rows({"A": BASE, "B": shifted(5.0), "RankedExp3": shifted(20.0, seed=2)}))
    found = verdict(runs)
    pair = runs.compare().iloc[0]
    (text,) = found.details
    assert text.startswith(
        "On DCM A lost less than every other policy: 10.0 satisfied searches in 100"
    )
    ends = interval(pair.low, pair.high)
    assert f"B lost 5.00 more than A (95% interval {ends}, p < 0.0001)" in text
    assert "RankedExp3 lost 20.0 more" in text
    assert "A was best on 12 of 12 queries." in text
    assert found.limits == []


def test_only_the_next_and_the_missions_policies_are_compared_in_words():
    table = {"A": BASE, "B": shifted(5.0), "C": shifted(6.0, seed=2), "dcmKL-UCB": shifted(9.0)}
    (text,) = verdict(runs_of(rows(table))).details
    assert "B lost 5.00 more than A" in text
    assert "dcmKL-UCB lost 9.00 more" in text
    assert "C lost" not in text


def test_of_several_variants_the_best_is_compared_in_words():
    table = {"A": BASE, "B": shifted(5.0), "RankedExp3": shifted(9.0)}
    table["RankedExp3(gamma=0.3)"] = shifted(7.0, seed=3)
    (text,) = verdict(runs_of(rows(table))).details
    assert "RankedExp3(gamma=0.3) lost 7.00 more" in text
    assert "RankedExp3 lost" not in text


def test_a_tie_has_no_winner():
    twin = shifted(0.1, spread=2.0)
    found = verdict(runs_of(rows({"A": BASE, "B": twin})))
    assert "there is no winner: B cannot be told apart from A" in found.details[0]
    found = verdict(runs_of(rows({"A": BASE, "B": twin, "C": shifted(30.0)})))
    assert found.details[0].startswith("On DCM A lost least on average, 10.0 satisfied")
    assert "It cannot be told apart from B; it lost less than C." in found.details[0]


def test_who_is_best_on_most_queries_is_said_where_it_is_another():
    # A is better in the mean, because of one query; B on all others
    a, b = [10.0] * 12, [9.0] * 11 + [60.0]
    (text,) = verdict(runs_of(rows({"A": a, "B": b}))).details
    assert "A was best on 1 of 12 queries, B on 11." in text


def test_a_ratio_that_is_clear_where_the_mean_is_not_is_said():
    a = [2.0**i for i in range(12)]
    b = [1.5 * x * (1.02 if i % 2 else 0.98) for i, x in enumerate(a)]
    found = verdict(runs_of(rows({"A": a, "B": b})))
    assert "there is no winner" in found.details[0]
    assert "1.50 times as much on a typical query, which is clear (" in found.details[0]


def test_simulators_that_agree():
    table = {"A": BASE, "B": shifted(5.0)}
    found = verdict(runs_of(rows(table), rows(table, simulator="PBM")))
    assert found.answer.startswith("A loses least on DCM and PBM. In 100 searches of a query")
    assert len(found.details) == 2
    assert not any("change places" in text for text in found.details)


def test_simulators_that_contradict_each_other():
    one, other = {"A": BASE, "B": shifted(5.0)}, {"B": BASE, "A": shifted(7.0)}
    found = verdict(runs_of(rows(one), rows(other, simulator="PBM")))
    assert found.answer == (
        "The answer depends on the simulator: the best policy is A on DCM and B on PBM."
    )
    assert found.details[-1] == (
        "A and B change places: B lost 5.00 more on DCM (p < 0.0001), "
        "A lost 7.00 more on PBM (p < 0.0001)."
    )


def test_means_that_differ_by_chance_are_no_contradiction():
    one = {"A": BASE, "B": shifted(0.1, spread=2.0)}
    other = {"B": BASE, "A": shifted(0.1, spread=2.0)}
    found = verdict(runs_of(rows(one), rows(other, simulator="PBM")))
    assert found.answer.startswith(
        "There is no winner: any of A and B may be best; on average A loses least on DCM and B "
        "loses least on PBM. In 100"
    )


def test_simulators_without_a_common_policy_say_nothing_about_each_other():
    runs = runs_of(rows({"A": BASE}), rows({"B": BASE}, simulator="PBM"))
    assert "have no policy in common" in verdict(runs).answer


def test_one_policy_and_one_run():
    found = verdict(runs_of(rows({"A": BASE})))
    assert found.answer.startswith("Only A was run on DCM. In 100 searches of a query it loses")
    (text,) = found.details
    assert "only A was run; it lost 10.0 satisfied searches in 100" in text
    found = verdict(runs_of(rows({"A": [1.0], "B": [2.0]})))
    assert found.answer.startswith("A loses least on DCM. Whether that is chance cannot be tested")
    assert "A lost least, 1.00 satisfied searches in 100" in found.details[0]


def test_the_oracle_does_not_win():
    found = verdict(runs_of(rows({"Oracle": [0.0] * 12, "A": BASE, "B": shifted(5.0)})))
    assert found.answer.startswith("A loses least on DCM")
    assert "Oracle" not in found.text()


def test_few_queries_rising_curves_and_notes_are_limits():
    linear = (0.01, 0.5, 1.0)
    table = {"A": [1.0, 2.0, 3.0], "B": [9.0, 8.0, 9.5], "Random": [20.0, 21.0, 22.0]}
    runs = runs_of(rows(table, shape=linear), notes=["DCM: lists are short"])
    limits = verdict(runs).limits
    assert any("3 queries are few" in text for text in limits)
    (rising,) = [text for text in limits if "still rise" in text]
    assert rising.endswith("compared with the average: A 100% and B 100%")  # Random never learns
    assert "DCM: lists are short" in limits


def test_a_log_without_clicks_has_no_verdict():
    runs = runs_of(rows({"A": BASE, "B": shifted(5.0)}), notes=[f"DCM: {NO_CLICK}: prior"])
    found = verdict(runs)
    assert found.answer.startswith("There is no click in the log")
    assert found.details == []
    assert found.limits[-1].startswith("DCM")
    assert not found.sound


def test_the_late_slope_of_known_curves():
    runs = runs_of(rows({"A": [4.0]}, shape=(0.1, 0.5, 1.0)), rows({"B": [4.0]}, shape=(0, 0.9, 1)))
    slopes = {p: late_slope(c) for p, c in runs.curves("DCM").items()}
    assert slopes == pytest.approx({"A": 1.0, "B": 0.2})


def test_lists_and_pairs_meet_at_the_best_position():
    pair = {"pair_optimal_reward": 100.0}
    lists = rows({"A": BASE, "B": shifted(9.0)}, simulator="PBM", **pair)
    lists["pair_regret"] = lists["regret"]
    pairs = rows({"Rank1ElimKL": shifted(60.0)}, simulator="PBM", track="rank1", **pair)
    pairs["pair_regret"] = pairs["regret"]
    found = verdict(runs_of(lists, pairs)).details[-1]
    assert (
        "there A lost least, 10.0% of what the best pair would have brought; Rank1ElimKL lost "
        "60.0 percentage points more" in found
    )


def test_the_share_in_words_is_that_of_the_table():
    # queries whose best pairs earn very different rewards: a mean of shares is not the share
    optimal = [10.0 if q % 2 else 1000.0 for q in range(12)]
    frames = []
    for policy, track, by in (("A", "ranking", 0.0), ("Rank1ElimKL", "rank1", 4.0)):
        frame = rows({policy: [b + by for b in BASE]}, simulator="PBM", track=track)
        best = [optimal[int(query.partition("@")[0])] for query in frame["query"]]
        pair = {"pair_regret": frame["regret"], "pair_optimal_reward": best}
        frames.append(frame.assign(optimal_reward=best, **pair))
    runs = runs_of(*frames)
    table = runs.relative().set_index(["policy", "reward"])["relative_regret"]
    share = table["A", "top pair"]
    assert share == pytest.approx(sum(BASE) / sum(optimal))
    text = verdict(runs).details[-1]
    assert f"there A lost least, {share:.1%} of what the best pair would have brought" in text
    points = 100 * (table["Rank1ElimKL", "pair"] - share)
    assert f"Rank1ElimKL lost {points:.1f} percentage points more" in text


def size(query, rows, columns):
    measures = {"mu": 0.1, "p_max": 0.5, "gamma": 0.5, "bound": 1e6}
    return problem(query, "PBM", "rank1", items=rows, positions=columns, **measures)


def test_elimination_that_has_not_begun_is_explained():
    left = {"rows_left": 8, "columns_left": 4}
    table = rows({"Rank1ElimKL": [5.0, 6.0]}, simulator="PBM", track="rank1", **left)
    runs = runs_of(table, problems=[size("0@0", 8, 4), size("1@0", 8, 4)])
    (text,) = [text for text in verdict(runs).limits if "eliminated nothing" in text]
    # 16 log 100 = 73.7: 74 observations of each of 8 rows and 4 columns
    assert "takes 888 searches and ends within 100 on 0 of 2 queries" in text
    some = table.assign(columns_left=[4, 4, 4, 4, 4, 2])
    runs = runs_of(some, problems=[size("0@0", 8, 4), size("1@0", 8, 4)])
    assert any("eliminated nothing in 1 of 2 runs" in text for text in verdict(runs).limits)
    done = table.assign(columns_left=2)
    runs = runs_of(done, problems=[size("0@0", 8, 4), size("1@0", 8, 4)])
    assert not any("eliminated nothing" in text for text in verdict(runs).limits)


def test_the_first_stage_is_that_of_the_algorithms():
    assert Rank1ElimKL.first_stage(8, 4, 100) == 74 * 12
    assert UCB1Elim.first_stage(8, 4, 100) == 10 * 32  # 2 log 100 = 9.2


def test_the_terminal_has_80_columns_and_whole_names():
    table = {"dcmKL-UCB": BASE, "RankedKL-UCB": shifted(5.0), "RankedExp3": shifted(20.0)}
    text = verdict(runs_of(rows(table), rows(table, simulator="PBM"))).text()
    assert max(map(len, text.splitlines())) <= 80
    assert not re.search(r"-$", text, re.MULTILINE)


def test_numbers_in_words():
    assert [number(x) for x in (1234.5, 99.96, 12.34, 1.234, 0.01234, 0.0)] == [
        "1,234", "100.0", "12.3", "1.23", "0.012", "0"
    ]  # fmt: skip
    assert [p_value(p) for p in (float("nan"), 1e-5, 0.00034, 0.0496, 0.5)] == [
        "", "p < 0.0001", "p = 0.0003", "p = 0.050", "p = 0.500"
    ]  # fmt: skip
    assert number(-0.000123) == "-1.2e-04"
    assert interval(0.0, 0.00034) == "0.0e+00 to 3.4e-04"
    assert interval(-1.23, 45.6) == "-1.2 to 45.6"
    assert joined(["a", "b", "c"]) == "a, b and c"
