"""What the verdict says to do, on tables where that is evident, and what makes it say so."""

import math

import pytest

from logeval.reports.verdict import verdict
from tests.reports.tables import around, problem, rows, runs_of

BASE = around(10.0, 3.0)  # of 100: A earns .9 a search
TABLE = {"A": BASE, "B": [x + 5.0 for x in BASE]}
OTHER = {"B": BASE, "A": TABLE["B"]}
LINE, EARLY = (0.01, 0.5, 1.0), (0.05, 0.9, 1.0)  # shares of the regret by steps 1, 50 and 100
FINE = {"faulted": [], "faults": [], "judged": 8, "serps": 2000, "held_out": True}
WRONG = FINE | {"faulted": ["distance"], "faults": ["too few clicks"]}
PLAN = "logeval plan says how many searches a test takes."


def runs_with(ranker, checks, draws=8, shape=LINE, tables=None, serps=1000):
    """Runs whose ranker earns this on each simulator, of which this is known."""
    tables = tables or dict.fromkeys(checks, TABLE)
    ranker = ranker if isinstance(ranker, dict) else dict.fromkeys(checks, ranker)
    return runs_of(
        *(rows(table, simulator=name, shape=shape) for name, table in tables.items()),
        problems=[
            problem(f"{q}@0", name, ranker=ranker[name], serps=serps)
            for name in checks
            for q in range(12)
        ],
        simulators={name: {"checks": known, "draws": draws} for name, known in checks.items()},
    )


def decided(*args, **options):
    return verdict(runs_with(*args, **options)).decision


def test_a_policy_that_is_ahead_on_sound_simulators_is_worth_a_test():
    assert decided(0.5, {"DCM": FINE, "PBM": FINE}) == (
        f"Test A in traffic: it ends ahead of today's ranker on DCM and PBM. {PLAN}"
    )


def test_a_policy_that_stays_behind_is_not():
    assert decided(0.97, {"DCM": FINE}) == (
        "Keep today's ranker: A, which loses least, still earns less than it after 100 searches of "
        "a query on DCM."
    )


def test_ahead_of_one_and_behind_another_is_no_decision():
    assert decided({"DCM": 0.5, "PBM": 0.97}, {"DCM": FINE, "PBM": FINE}) == (
        "Do not decide yet: A does not end clearly ahead of today's ranker on PBM; a longer "
        "--horizon, or more queries, may show it."
    )


def test_a_short_log_needs_no_longer_horizon():
    for ranker, more in ((0.9, {}), (0.95, {"shape": EARLY})):
        assert "longer --horizon" in decided(ranker, {"DCM": FINE}, **more)
        found = decided(ranker, {"DCM": FINE}, serps=13, **more)
        assert "--horizon" not in found
        assert "a longer log" in found


def test_checks_that_judged_nothing_have_checked_nothing():
    found = decided(0.5, {"DCM": FINE | {"judged": 0}})
    assert found.startswith("Do not decide yet: the log has too few clicks")


def test_an_interval_that_contains_the_ranker_is_no_decision():
    found = decided(0.9, {"DCM": FINE})  # what A earns
    assert found.startswith("Do not decide yet: A does not end clearly ahead of today's ranker on ")


def test_a_policy_that_is_ahead_at_the_end_but_has_not_paid():
    found = decided(0.95, {"DCM": FINE}, shape=EARLY)  # .98 in the second half, .9 in all
    assert found.startswith("Do not decide yet: A ends ahead of today's ranker on DCM, but within")
    assert "it has not earned back what learning cost on DCM; a longer --horizon" in found


def test_the_simulators_that_no_check_faults_decide():
    checks = {"DCM": WRONG, "PBM": FINE}
    assert decided({"DCM": 0.97, "PBM": 0.5}, checks).startswith(
        "Test A in traffic: it ends ahead of today's ranker on PBM, which no check faults."
    )
    assert decided({"DCM": 0.5, "PBM": 0.97}, checks).startswith("Keep today's ranker")


def test_where_there_is_little_the_test_is_small():
    found = decided(0.5, {"DCM": FINE}, serps=200)
    assert found.startswith("A small test in traffic at most: A ends ahead of today's ranker on ")
    assert found.endswith(f", but it rests on too little to be sure. {PLAN}")


@pytest.mark.parametrize("ranker", [0.5, 0.97])  # far behind A, and ahead of it
@pytest.mark.parametrize(
    ("checks", "options", "why"),
    [
        ({"DCM": WRONG, "PBM": WRONG}, {}, "users of DCM and PBM do not click quite like yours"),
        ({"DCM": WRONG}, {"draws": 0}, "users of DCM do not click quite like yours"),
        ({"DCM": None}, {}, "nobody has checked DCM"),
        ({"DCM": WRONG, "PBM": None}, {}, "nobody has checked PBM"),
        ({"DCM": FINE | {"held_out": False}}, {}, "the models were fitted to; fit with --holdout"),
        ({"DCM": FINE}, {"draws": 0}, "the parameters of DCM were taken as exact"),
    ],
)
def test_less_care_is_no_decision(ranker, checks, options, why):
    found = decided(ranker, checks, **options)
    assert found.startswith("Do not decide yet: ")
    assert why in found


def test_a_simulator_that_today_s_lists_contradict_does_not_decide():
    facts = [problem(f"{q}@0", ranker=0.5, serps=1000, log_clicks=0.9, ranker_clicks=0.5,
                     log_clicks_error=0.01) for q in range(12)]  # fmt: skip
    known = {"DCM": {"checks": FINE, "draws": 8}}
    found = verdict(runs_of(rows(TABLE, shape=LINE), problems=facts, simulators=known))
    assert found.decision.startswith("Do not decide yet: users of DCM do not click quite like")


def test_the_doubts_about_a_faulted_simulator_are_not_those_about_another():
    """The PBM, which is faulted, rests on the prior; the DCM does not."""
    known = {
        name: {"checks": checks, "draws": 8, "identified": {"not_carried": lost, "queries": 12}}
        for name, checks, lost in (("DCM", FINE, []), ("PBM", WRONG, ["1@0"]))
    }
    frames = [rows(TABLE, simulator=name, shape=LINE) for name in known]
    facts = [problem(f"{q}@0", n, ranker=0.5, serps=1000) for n in known for q in range(12)]
    found = verdict(runs_of(*frames, problems=facts, simulators=known))
    assert found.decision.startswith("Test A in traffic: it ends ahead of today's ranker on DCM, ")
    assert not found.sound


def test_simulators_that_contradict_each_other_are_no_decision():
    checks, tables = {"DCM": FINE, "PBM": FINE}, {"DCM": TABLE, "PBM": OTHER}
    assert decided(0.5, checks, tables=tables) == (
        "Do not decide yet: which policy is best depends on the simulator."
    )
    one = decided(0.5, {"DCM": WRONG, "PBM": FINE}, tables=tables)  # go by PBM
    assert one.startswith("Test B in traffic: it ends ahead of today's ranker on PBM, which no ")


def test_what_was_run_once_is_no_decision():
    one = {"A": [10.0], "B": [20.0]}
    assert decided(0.5, {"DCM": FINE}, tables={"DCM": one}).startswith(
        "Do not decide yet: whether A beats today's ranker cannot be tested"
    )


def test_without_a_ranker_there_is_nothing_to_decide():
    found = verdict(runs_of(rows(TABLE)))
    assert found.decision == ""
    assert found.text().startswith(found.answer[:40])


def test_the_decision_comes_first_in_the_terminal():
    found = verdict(runs_with(0.5, {"DCM": FINE}))
    assert found.text(1000).splitlines()[:2] == [found.decision, found.answer]


def test_baselines_are_nobody_to_decide_about():
    """Today's ranker itself may lose least; what is decided about is the best that learns."""
    table = {"Logged": [x / 2 for x in BASE], **TABLE}
    found = decided(0.95, {"DCM": FINE}, tables={"DCM": table})
    assert found.startswith("Keep today's ranker: A, which loses least")


# -- traffic ----------------------------------------------------------------------------------


def test_queries_with_less_traffic_than_the_break_even_are_counted():
    runs = runs_with(0.85, {"DCM": FINE}, shape=EARLY, serps=20)
    at = runs.against_ranker().set_index("policy").loc["A", "break_even_low"]
    assert 20 < at < 100
    (text,) = [text for text in verdict(runs).limits if "searched less often" in text]
    assert text.startswith(
        "12 of 12 queries were searched less often in the log than it takes A to break even at "
    )
    enough = runs_with(0.85, {"DCM": FINE}, shape=EARLY, serps=100)
    assert not [text for text in verdict(enough).limits if "searched less often" in text]


# -- many simulators --------------------------------------------------------------------------


def test_of_many_simulators_those_without_a_fault_have_their_numbers():
    names = ("DCM", "PBM", "UBM", "DBN")
    checks = {name: WRONG if name != "UBM" else FINE for name in names}
    answer = verdict(runs_with(0.5, checks)).answer
    assert (
        "A passes today's ranker on 4 of 4 simulators, from the first search. Where no check "
        in (answer)
    )
    assert (
        "faults the simulator, A is ahead of today's ranker from the first search on UBM. At the "
        "end a search brings 0.90 satisfied searches on UBM (today's 0.50, the best list 1.00)."
        in answer
    )
    assert "on UBM" not in verdict(runs_with(0.5, dict.fromkeys(names, WRONG))).answer


def test_of_many_simulators_some_are_passed_at_once_and_others_later():
    names = ("DCM", "PBM", "UBM", "DBN")
    ranker = dict(zip(names, (0.5, 0.05, 0.85, 0.85), strict=True))
    answer = verdict(runs_with(ranker, dict.fromkeys(names, WRONG), shape=(0.001, 0.9, 1.0))).answer
    assert "A passes today's ranker on 4 of 4 simulators, on 2 from the first search, on the " in (
        answer
    )
    assert "others after " in answer


def test_a_first_look_that_is_free_is_said_beside_the_break_even():
    free = {"dcmKL-UCB(init=sample)": BASE, "B": TABLE["B"]}
    said = "This does not count a first look at every item, which is free here."
    assert said in verdict(runs_with(0.5, {"DCM": FINE}, tables={"DCM": free})).answer
    paid = {"dcmKL-UCB": BASE, "B": TABLE["B"]}
    assert said not in verdict(runs_with(0.5, {"DCM": FINE}, tables={"DCM": paid})).answer
    assert said not in verdict(runs_with(0.5, {"DCM": FINE})).answer


def test_a_break_even_is_an_interval():
    runs = runs_with(0.85, {"DCM": FINE}, shape=EARLY)
    row = runs.against_ranker().set_index("policy").loc["A"]
    low, at, high = row[["break_even_low", "break_even", "break_even_high"]]
    assert low < at < high < 100
    text = verdict(runs).answer
    assert f"after {math.ceil(low)} to {math.ceil(high)} searches of a query (95% interval" in text
    assert f"after {math.ceil(at)} " not in text


def test_trust_is_part_of_the_verdict():
    assert any("were taken as exact" in t for t in verdict(runs_with(0.5, {"DCM": FINE}, 0)).trust)
