"""Policies that assume another order of the positions than the simulator has, and refusals."""

from dataclasses import replace

import pytest

from logeval.errors import LogevalError
from logeval.evaluation.evaluate import evaluate
from logeval.evaluation.running.position_order import order_notes
from logeval.policies.registry import parse_policies
from logeval.tracks.registry import synthetic_problem

FALLING = "PBM(w=0.5/0.4/0.3,e=1/0.6)"
RISING = "PBM(w=0.5/0.4/0.3,e=0.6/1)"


def notes(policies, *problems):
    return order_notes(parse_policies(policies), [synthetic_problem(p) for p in problems])


def test_only_policies_that_assume_the_wrong_order_are_named():
    (note,) = notes(["TopRank", "PBM-UCB", "GRAB", "UniRank(order=2>1)", "CTS"], RISING)
    assert note.startswith(RISING)
    assert "in 1 of 1 queries" in note
    assert "that TopRank, CTS assume" in note


def test_no_note_where_the_order_is_right():
    assert notes(["TopRank", "UniRank"], FALLING, "CM(w=0.5/0.4,K=2)") == []
    assert notes(["UniRank(order=2>1)"], RISING) == []
    assert "UniRank(order=2>1)" in notes(["UniRank(order=2>1)"], FALLING)[0]


def test_the_termination_of_a_dcm_has_an_order_too():
    (note,) = notes(["TopRank"], "DCM(w=0.5/0.4,v=0.2/0.7)")
    assert "that TopRank assumes, so its regret" in note


def test_the_notes_are_kept_with_the_runs(tmp_path):
    found = evaluate(
        problem=RISING, policies=["TopRank"], horizon=5, runs=1, out=tmp_path / "runs", quiet=True
    )
    assert "TopRank" in found.notes[0]


def test_a_policy_that_cannot_be_served_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(LogevalError, match=r"PBM-UCB.*kappa=estimated"):
        evaluate(
            problem="CM(w=0.5/0.4,K=2)", policies=["Random", "PBM-UCB"], horizon=5, runs=1,
            out=tmp_path / "runs", quiet=True,
        )  # fmt: skip
    assert not (tmp_path / "runs").exists()


def test_draws_of_a_query_are_not_counted_as_queries():
    problem = synthetic_problem(RISING)
    draws = [replace(problem, query="7@0", draw=draw) for draw in (1, 2, 3)]
    (note,) = order_notes(parse_policies(["TopRank"]), draws)
    assert "in 3 of 3 draws of 1 queries" in note
