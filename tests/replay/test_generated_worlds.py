"""Generated DCM and PBM users, lists in random order: a small edition of a benchmark.

benchmarks/replay_worlds.py has the figures that docs/evidence.md states. Here the differences are
several times the errors: a bias of .1 and more against .05.
"""

import pytest

from benchmarks.replay_verdicts import five, verdicts_on
from benchmarks.replay_worlds import errors, rows


@pytest.fixture(scope="module")
def found():
    every = rows(sessions=3000, targets=2, logs=2)
    return {(r["users"], r["estimator"], r["positions"]): r for r in every}


@pytest.mark.parametrize(
    ("users", "right", "wrong"),
    [
        ("DCM", "Cascade-DR(dcm)", ("List", "Prefix", "IP", "PBM", "DM", "DR", "Cascade-DR")),
        ("PBM", "PBM", ("List", "Prefix", "Item", "RCTR", "DM(dcm)")),
    ],
)
def test_the_right_assumption_wins_where_positions_matter(found, users, right, wrong):
    for K in (5, 10):
        best = found[users, right, K]["rmse"]
        for name in wrong:
            assert best < 0.8 * found[users, name, K]["rmse"], (name, K)


@pytest.mark.parametrize(("users", "models"), [("DCM", {"dcm", "dbn"}), ("PBM", {"pbm", "ubm"})])
def test_by_default_the_answer_is_by_the_model_that_predicts_best_and_holds_the_truth(
    users, models
):
    """In DCM worlds IP, PBM and DR(pbm) are .1 to .2 clicks off, and agree with each other."""
    held = []
    for repetition in range(3):
        logged, targets, truths = five(users, repetition)
        for one, truth in zip(verdicts_on(logged, targets, repetition), truths, strict=True):
            believed = one.estimators[one.believed]
            assert (believed.NAME, believed.model in models) == ("DR", True)
            assert not one.rivals
            held.append(one.row["low"] <= truth <= one.row["high"])
    assert sum(held) >= 7, "of 9; with IP and PBM 3 of DCM users"


def test_list_fails_at_ten_positions_and_says_so(found):
    for users in ("DCM", "PBM"):
        at = {K: found[users, "List", K] for K in (1, 2, 10)}
        assert at[1]["support"] == at[2]["support"] == 1.0
        assert at[10]["support"] == 0.0
        assert at[10]["rmse"] > 0.5 * at[10]["value"], "what was never shown counts as no clicks"
        assert found[users, "IP", 10]["support"] == 1.0


def test_at_one_position_the_weights_of_list_prefix_ip_and_item_are_the_same():
    by_log = [r for r in errors("PBM", 500, 1, 1) if r["positions"] == 1 and r["clip"] > 1e6]
    names = ("List", "Prefix", "IP", "Item")
    values = {name: [r["error"] for r in by_log if r["estimator"] == name] for name in names}
    for name in names[1:]:
        assert values[name] == pytest.approx(values["List"], abs=1e-12)
