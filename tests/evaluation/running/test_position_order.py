"""Policies that assume another order of the positions than the simulator has, and refusals."""

from dataclasses import replace

import pytest

from logeval.errors import LogevalError
from logeval.evaluation.evaluate import evaluate
from logeval.evaluation.matching import common_order, loss, order_notes
from logeval.policies.registry import parse_policies
from logeval.tracks.registry import synthetic_problem

FALLING = "PBM(w=0.5/0.4/0.3,e=1/0.6)"
RISING = "PBM(w=0.5/0.4/0.3,e=0.6/1)"
# best 0.5 + 0.24 = 0.74, in the assumed order 0.3 + 0.4 = 0.7: 54 of 1,000 are lost


def notes(policies, *problems):
    return order_notes(parse_policies(policies), [synthetic_problem(p) for p in problems])


def test_the_loss_is_that_of_the_best_items_in_the_assumed_order():
    problem = synthetic_problem(RISING)
    assert loss([problem], "descending") == pytest.approx(0.04 / 0.74)
    assert loss([problem], "2>1") == pytest.approx(0.0)
    assert loss([synthetic_problem(FALLING)], "descending") == 0.0


def test_only_policies_that_assume_the_wrong_order_are_named_and_the_advice_can_be_pasted():
    (note,) = notes(["TopRank", "PBM-UCB", "GRAB", "UniRank(order=2>1)", "CTS"], RISING)
    assert note == (
        "TopRank and CTS place items in an order of the positions that is not the best one: even "
        f"with the right items they lose 54 of 1,000 on {RISING}; order=2>1 would lose 0 of 1,000"
    )
    advised = note.partition("order=")[2].partition(" ")[0]
    assert notes([f"TopRank(order={advised})"], RISING) == []


def test_no_note_where_the_order_is_right():
    assert notes(["TopRank", "UniRank"], FALLING, "CM(w=0.5/0.4,K=2)") == []
    assert notes(["UniRank(order=2>1)"], RISING) == []
    assert "UniRank(order=2>1) places" in notes(["UniRank(order=2>1)"], FALLING)[0]
    assert notes(["dcmKL-UCB(order=known)"], RISING) == []


def test_no_order_is_advised_where_none_is_better_on_all_simulators():
    lopsided = "PBM(w=0.9/0.4/0.1,e=0.3/1/0.9)", "PBM(w=0.9/0.4/0.1,e=1/0.2/0.9)"
    (note,) = notes(["TopRank"], *lopsided)
    assert "order=" not in note
    assert note.count(" of 1,000 on PBM") == 2


def test_no_sentence_is_lost_on_little():
    assert notes(["TopRank"], "PBM(w=0.5/0.4999/0.3,e=0.6/0.61)") == []


def test_the_termination_of_a_dcm_has_an_order_too():
    (note,) = notes(["TopRank"], "DCM(w=0.5/0.4,v=0.2/0.7)")
    assert note.startswith("TopRank places items")
    assert note.endswith("order=2>1 would lose 0 of 1,000")


def test_the_common_order_is_by_the_mean_rank():
    problems = [synthetic_problem(f"PBM(w=0.5/0.4/0.3,e={e})") for e in ("0.1/1/0.5", "0.2/0.9/1")]
    assert common_order(problems) == "2>3>1"


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


def test_draws_of_a_query_count_together():
    problem = synthetic_problem(RISING)
    draws = [replace(problem, simulator="PBM", query="7@0", draw=draw) for draw in (1, 2, 3)]
    (note,) = order_notes(parse_policies(["TopRank"]), draws)
    assert note.count("54 of 1,000 on PBM") == 1
