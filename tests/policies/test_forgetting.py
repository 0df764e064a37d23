"""What is remembered, by hand; and what that is worth when users change."""

import math

import numpy as np
import pytest

from logeval.errors import LogevalError
from logeval.policies.shared.options import discount_of, steps_in_memory, window_of
from logeval.tracks.lists import b_lb
from tests.policies.running import make, reference_of, steps, users_of


def test_a_window_forgets_what_is_older():
    users = users_of(b_lb(5, 2, 0.6, 0.3))
    policy = make("SW-dcmKL-UCB(tau=3)", users, 50)
    seen = []
    for t, A, clicks in steps(policy, users, 50):
        T, S = np.zeros(5), np.zeros(5)
        for items, on in seen[-3:]:
            last = on.nonzero()[0].max(initial=-1) if on.any() else 1
            T[items[: last + 1]] += 1
            S[items[on > 0]] += 1
        assert policy.memory.T[0].tolist() == T.tolist(), t
        assert policy.memory.S[0].tolist() == S.tolist()
        seen.append((A[0].copy(), clicks[0].copy()))


def test_a_discount_weighs_a_step_by_its_age():
    users = users_of(b_lb(5, 2, 0.6, 0.3))
    policy = make("CascadeDUCB(gamma=0.7)", users, 30)
    T = np.zeros(5)
    for _, A, clicks in steps(policy, users, 30):
        assert policy.memory.T[0] == pytest.approx(T)
        examined = A[0, :1] if clicks[0, 0] else A[0]
        T *= 0.7
        T[examined] += 1.0


@pytest.mark.parametrize(
    ("name", "budget"),
    [
        ("CascadeSWUCB(tau=4,eps=0.5)", lambda m: 0.5 * math.log(m)),
        ("CascadeDUCB(gamma=0.5,eps=0.5)", lambda m: 4.0 * 0.5 * math.log(m)),  # twice the radius
        ("SW-dcmKL-UCB(tau=4)", lambda m: math.log(m) + 3.0 * math.log(math.log(m))),
    ],
)
def test_bounds_by_hand(name, budget):
    """At step 7 four steps are in the window, and 1 + 1/2 + ... of six are weighed."""
    users = users_of(b_lb(5, 2, 0.6, 0.3))
    m = 2.0 - 0.5**5 if "gamma" in name else 4.0
    assert make(name, users, 50).now(7)[2] == pytest.approx(max(budget(m), 0.0))
    if name.startswith("Cascade"):
        p, T = np.array([0.3]), np.array([20.0])
        assert reference_of(name, users, 50).bound(m, p, T) == pytest.approx(
            0.3 + math.sqrt(budget(m) / 20.0)
        )


def test_steps_remembered():
    assert steps_in_memory(4, 0.5) == 1.75
    assert steps_in_memory(4, 1.0) == 3.0
    assert window_of(None, 10_000) == 607  # 2 sqrt(n ln n)
    assert window_of(50, 20) == 20
    assert discount_of(None, 10_000) == 0.9975


@pytest.mark.parametrize("wrong", ["CascadeSWUCB(tau=0)", "D-dcmKL-UCB(gamma=1.5)"])
def test_parameters_are_checked(wrong):
    with pytest.raises(LogevalError, match="must"):
        make(wrong, users_of(b_lb(5, 2, 0.6, 0.3)), 10)


def test_as_good_as_dcm_kl_ucb_with_a_window_of_everything():
    users = users_of(b_lb(6, 2, 0.6, 0.4, 0.5), runs=20)
    found = {
        name: sum(users.regret(A).mean() for _, A, _ in steps(make(name, users, 2000), users, 2000))
        for name in ("SW-dcmKL-UCB(tau=2000)", "D-dcmKL-UCB(gamma=1)", "dcmKL-UCB")
    }
    assert max(found.values()) < 1.2 * min(found.values())
