"""Policies that assume another order of the positions than the simulator has, and refusals."""

from dataclasses import replace

import pytest

from logeval.errors import LogevalError
from logeval.evaluation.evaluate import evaluate
from logeval.evaluation.matching import common_order, loss, order_facts
from logeval.evaluation.results import Runs
from logeval.policies.registry import parse_policies
from logeval.tracks.registry import synthetic_problem

FALLING = "PBM(w=0.5/0.4/0.3,e=1/0.6)"
RISING = "PBM(w=0.5/0.4/0.3,e=0.6/1)"
# best 0.5 + 0.24 = 0.74, in the assumed order 0.3 + 0.4 = 0.7: 54 of 1,000 are lost


def facts(policies, *problems):
    return order_facts(parse_policies(policies), [synthetic_problem(p) for p in problems])


def test_the_loss_is_that_of_the_best_items_in_the_assumed_order():
    problem = synthetic_problem(RISING)
    assert loss([problem], "descending") == pytest.approx(0.04 / 0.74)
    assert loss([problem], "2>1") == pytest.approx(0.0)
    assert loss([synthetic_problem(FALLING)], "descending") == 0.0


def test_only_policies_that_assume_the_wrong_order_are_named_and_the_advice_can_be_pasted():
    lost, better = facts(["TopRank", "PBM-UCB", "GRAB", "UniRank(order=2>1)", "CTS"], RISING)
    assert (lost.code, lost.about, lost.level) == ("order-loses", "TopRank, CTS", "caution")
    assert lost.value == pytest.approx(0.04 / 0.74)
    assert list(lost.more["losses"]) == [RISING]
    assert (better.code, better.about, better.value) == ("order-better", "2>1", pytest.approx(0.0))
    assert facts([f"TopRank(order={better.about})"], RISING) == []


def test_nothing_is_said_where_the_order_is_right():
    assert facts(["TopRank", "UniRank"], FALLING, "CM(w=0.5/0.4,K=2)") == []
    assert facts(["UniRank(order=2>1)"], RISING) == []
    assert facts(["UniRank(order=2>1)"], FALLING)[0].about == "UniRank(order=2>1)"
    assert facts(["dcmKL-UCB(order=known)"], RISING) == []


def test_no_order_is_advised_where_none_is_better_on_all_simulators():
    lopsided = "PBM(w=0.9/0.4/0.1,e=0.3/1/0.9)", "PBM(w=0.9/0.4/0.1,e=1/0.2/0.9)"
    (lost,) = facts(["TopRank"], *lopsided)
    assert list(lost.more["losses"]) == list(lopsided)


def test_nothing_is_said_of_little():
    assert facts(["TopRank"], "PBM(w=0.5/0.4999/0.3,e=0.6/0.61)") == []


def test_the_termination_of_a_dcm_has_an_order_too():
    lost, better = facts(["TopRank"], "DCM(w=0.5/0.4,v=0.2/0.7)")
    assert (lost.about, better.about, better.value) == ("TopRank", "2>1", 0.0)


def test_the_common_order_is_by_the_mean_rank():
    problems = [synthetic_problem(f"PBM(w=0.5/0.4/0.3,e={e})") for e in ("0.1/1/0.5", "0.2/0.9/1")]
    assert common_order(problems) == "2>3>1"


def test_the_facts_are_kept_with_the_runs(tmp_path):
    found = evaluate(
        problem=RISING, policies=["TopRank"], horizon=5, runs=1, out=tmp_path / "runs", quiet=True
    )
    assert [fact.code for fact in found.facts] == ["order-loses", "order-better"]
    evaluate(
        problem=RISING, policies=["TopRank"], horizon=5, runs=2, out=tmp_path / "runs", quiet=True
    )
    assert Runs.load(tmp_path / "runs").facts == found.facts  # each once
    assert "order=2>1 would lose 0.0% on PBM" in found.notes[1]


def test_a_policy_that_cannot_be_served_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(LogevalError, match=r"PBM-UCB.*kappa=estimated"):
        evaluate(
            problem="CM(w=0.5/0.4,K=2)", policies=["Random", "PBM-UCB"], horizon=5, runs=1,
            out=tmp_path / "runs", quiet=True,
        )  # fmt: skip
    assert not (tmp_path / "runs").exists()


def test_draws_of_a_query_count_together():
    problem = synthetic_problem(RISING)
    draws = [replace(problem, simulator="PBM", query="7@0", draw=draw) for draw in (1, 2, 3)]
    lost, _ = order_facts(parse_policies(["TopRank"]), draws)
    assert lost.more["losses"] == {"PBM": pytest.approx(0.04 / 0.74)}
