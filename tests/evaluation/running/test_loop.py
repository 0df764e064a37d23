"""The loop counts its steps, and no action of a user's policy reaches compiled code unchecked."""

from types import SimpleNamespace

import numpy as np
import pytest

from logeval.errors import LogevalError
from logeval.evaluation.loop import TICK, CheckedPolicy, run


class Told:
    """Policy, environment and meters that write down what they are told."""

    def __init__(self):
        self.heard = []

    def __getattr__(self, name):
        def tell(*arguments):
            self.heard.append((name, *arguments))
            return f"{name} {len(self.heard)}"

        return tell


def test_every_step_is_recommend_step_measure_update_and_checkpoints_are_recorded():
    told = Told()
    run(told, told, told, [1, 3])
    names = [name for name, *_ in told.heard]
    step = ["recommend", "step", "add", "update"]
    assert names == [*step, "record", *step, *step, "record"]
    assert told.heard[:5] == [
        ("recommend", 1),
        ("step", "recommend 1"),
        ("add", 1, "recommend 1", "step 2"),
        ("update", 1, "recommend 1", "step 2"),
        ("record", 1),
    ]
    assert [t for name, t, *_ in (h for h in told.heard if h[0] == "add")] == [1, 2, 3]


@pytest.mark.parametrize("horizon", [1, TICK - 1, TICK, 2 * TICK + 3])
def test_the_ticks_add_up_to_the_steps(horizon):
    ticks = []
    run(Told(), Told(), Told(), [horizon], ticks.append)
    assert sum(ticks) == horizon
    assert len(ticks) == horizon // TICK + 1


def checked(A, distinct=True):
    """What a policy's choice becomes, with 4 items in the first replica and 3 in the second."""
    setting = SimpleNamespace(limits=np.array([[4, 4], [3, 3]]), distinct=distinct)
    policy = SimpleNamespace(recommend=lambda t: A, update=lambda t, A, clicks: None)
    return CheckedPolicy(policy, "mine", setting).recommend(7)


def test_choices_within_the_labels_are_copied_as_int64():
    A = np.array([[3, 0], [2, 0]], dtype=np.int32)
    found = checked(A)
    assert (found == A).all()
    assert found.dtype == np.int64
    assert not np.shares_memory(checked(A.astype(np.int64)), A)
    assert checked([[1, 1], [2, 2]], distinct=False).tolist() == [[1, 1], [2, 2]]


@pytest.mark.parametrize(
    ("A", "message"),
    [
        ([[0, 1], [0, 3]], r"at step 7 the choice \[0, 3\] of replica 1 .* from 0 to \[2, 2\]"),
        ([[0, 4], [0, 1]], r"\[0, 4\] of replica 0 must hold different labels from 0 to \[3, 3\]"),
        ([[0, 1], [-1, 1]], r"\[-1, 1\] of replica 1"),
        ([[0, 1], [2, 2]], r"\[2, 2\] of replica 1"),
        ([[0.0, 1.0], [0.0, 1.0]], "must return integers of shape .* not float64"),
        ([[True, False], [True, False]], "not bool"),
        ([[0, 1, 2], [0, 1, 2]], r"not int64 of shape \(2, 3\)"),
        ([0, 1], r"not int64 of shape \(2,\)"),
        (None, "not object"),
    ],
)
def test_other_choices_are_refused_with_their_place(A, message):
    with pytest.raises(LogevalError, match=message):
        checked(A)


def test_equal_labels_are_found_wherever_they_are():
    setting = SimpleNamespace(limits=np.full((1, 4), 9), distinct=True)
    for A in ([5, 5, 1, 2], [5, 1, 5, 2], [1, 5, 2, 5], [1, 2, 8, 8]):
        policy = SimpleNamespace(recommend=lambda t, A=A: np.array([A]))
        with pytest.raises(LogevalError, match="different labels"):
            CheckedPolicy(policy, "mine", setting).recommend(1)
