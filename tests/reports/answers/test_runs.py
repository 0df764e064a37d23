"""What ``evaluate`` says, as facts: runs by hand, and letters against brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logeval.reports.answers.runs import late_slope, letters, rows_of
from tests.reports.tables import around, problem, rows, runs_of

BASE = around(10.0, 3.0)  # of 100: A earns .9 a search
TABLE = {"A": BASE, "B": [x + 5.0 for x in BASE]}
OTHER = {"B": BASE, "A": TABLE["B"]}
FINE = {"faulted": [], "judged": 8, "serps": 2000, "held_out": True}
WRONG = FINE | {"faulted": ["distance"]}


def facts(*frames, **about):
    """The facts by code, the conclusion's first."""
    return {fact.code: fact for fact in runs_of(*frames, **about).verdict().every}


def of(checks, draws=8, **facts_of_problem):
    """Runs on simulators of which this is known."""
    known = {name: {"checks": one, "draws": draws} for name, one in checks.items()}
    problems = [problem(f"{q}@0", name, **facts_of_problem) for name in checks for q in range(12)]
    frames = [rows(TABLE, simulator=name) for name in checks]
    return facts(*frames, simulators=known, problems=problems)


def test_who_loses_least_and_what_cannot_be_told_from_it():
    found = facts(rows(TABLE), rows(TABLE, simulator="PBM"))
    assert found["loses-least"].about == "A"
    assert found["loses-least"].value == pytest.approx(0.1)
    assert found["loses-least"].more == {"simulators": ["DCM", "PBM"], "searches": 100}
    assert "clear" in found
    near = {"A": BASE, "B": [x + d for x, d in zip(BASE, around(0.1, 3.0, seed=1), strict=True)]}
    assert facts(rows(near))["tied"].more == {"others": ["B"]}


def test_simulators_that_disagree():
    found = facts(rows(TABLE), rows(OTHER, simulator="PBM"))
    assert found["depends"].more == {"best": ["A on DCM", "B on PBM"]}
    assert "may-be-best" not in found


def test_the_oracle_competes_with_nobody():
    assert facts(rows({"Oracle": BASE}))["only-the-oracle"].level == "stop"
    assert facts(rows({"Oracle": [0.0] * 12, **TABLE}))["loses-least"].about == "A"
    assert facts(rows({"A": BASE}))["alone"].about == "A"
    apart = facts(rows({"A": BASE}), rows({"B": BASE}, simulator="PBM"))
    assert apart["nothing-in-common"].more == {"simulators": ["DCM", "PBM"]}


def test_what_is_known_of_the_simulators():
    found = of({"DCM": FINE, "PBM": WRONG})
    assert found["checks-pass"].more == {"names": ["DCM"]}
    assert found["checks-fail"].more == {"names": ["PBM (1 of 8: distance)"]}
    assert not {"unchecked", "checks-lenient", "taken-as-exact", "thin-queries"} & set(found)
    found = of({"DCM": None, "PBM": FINE | {"held_out": False}}, draws=0, serps=120.0)
    assert found["unchecked"].more == {"names": ["DCM"]}
    assert found["checks-lenient"].more == {"names": ["PBM"]}
    assert found["taken-as-exact"].more == {"names": ["DCM", "PBM"]}
    assert (found["thin-queries"].value, found["thin-queries"].threshold) == (12.0, 12.0)
    assert found["thin-queries"].level == "caution"
    assert of({"DCM": FINE}, serps=4.0)["all-prior"].value == 4.0
    assert of({"DCM": FINE | {"judged": 0}})["unchecked"].more == {"names": ["DCM"]}


def test_a_log_without_a_click_says_nothing():
    assert list(of({"DCM": FINE}, log_clicks=0.0)) == ["no-clicks"]
    assert "loses-least" in of({"DCM": FINE}, log_clicks=0.1)


def test_few_queries_or_runs():
    assert facts(rows({"A": BASE[:1]}))["one-run"].level == "caution"
    few = {name: x[:4] for name, x in TABLE.items()}
    assert facts(rows(few))["few-queries"].value == 4.0
    lacks = rows(TABLE).query("policy != 'B' or query != '0@0'")
    assert facts(lacks)["runs-missing"].value == 1.0


def test_curves_that_still_rise_and_free_looks():
    found = facts(rows({"dcmKL-UCB(init=sample)": BASE, "Random": BASE}, shape=(0.01, 0.5, 1.0)))
    assert found["not-flat"].more == {"policies": ["dcmKL-UCB(init=sample)"]}
    assert found["free-looks"].more == {"policies": ["dcmKL-UCB(init=sample)"]}
    assert "not-flat" not in facts(rows(TABLE))
    flat = runs_of(rows({"A": BASE}, shape=(0.5, 1.0, 1.0))).curves("DCM")["A"]
    assert late_slope(flat) == 0.0


def test_elimination_that_has_not_begun():
    size = {"track": "rank1", "mu": 0.1, "items": 8, "positions": 4}
    mine = rows({"Rank1ElimKL": BASE}, track="rank1", rows_left=8.0, columns_left=4.0)
    found = facts(mine, problems=[problem(f"{q}@0", **size) for q in range(12)])
    assert found["nothing-eliminated"].about == "Rank1ElimKL"
    some = rows({"Rank1ElimKL": BASE}, track="rank1", rows_left=7.0, columns_left=4.0)
    assert "nothing-eliminated" not in facts(
        some, problems=[problem(f"{q}@0", **size) for q in range(12)]
    )


def test_another_policy_may_earn_more_clicks_than_satisfaction():
    clicks = [
        rows({name: TABLE[name]}, expected_clicks=x) for name, x in (("A", 40.0), ("B", 50.0))
    ]
    known = {"DCM": {"checks": FINE, "draws": 8}}
    problems = [problem(f"{q}@0", serps=900.0) for q in range(12)]
    found = facts(*clicks, simulators=known, problems=problems)
    assert found["other-in-clicks"].about == "B"


def test_the_table_has_ratios_and_letters():
    first, second, third = rows_of(runs_of(rows({**TABLE, "Oracle": [0.0] * 12})))
    assert (first.policy, first.groups) == ("Oracle", "")
    assert (second.policy, second.groups, second.ratio, second.alone) == ("A", "a", "", True)
    assert (third.policy, third.groups, third.alone) == ("B", "b", False)
    ratios = [(x + 5.0) / x for x in BASE]
    assert third.ratio.split()[0] == f"{np.exp(np.log(ratios).mean()):.2f}"


@given(st.integers(1, 7).flatmap(
    lambda n: st.tuples(st.just(n), st.sets(st.sampled_from([*itertools.combinations(range(n), 2)])
                                            if n > 1 else st.nothing()))
))  # fmt: skip
def test_names_share_a_letter_if_and_only_if_they_cannot_be_told_apart(given_):
    n, apart = given_
    names = [str(i) for i in range(n)]
    found = letters(names, [(names[i], names[j]) for i, j in apart])
    for i, j in itertools.combinations(range(n), 2):
        assert bool(set(found[names[i]]) & set(found[names[j]])) == ((i, j) not in apart)
    assert all(found.values())
    assert found[names[0]].startswith("a")
