"""What is remembered, by hand; and what that is worth when users change."""

import numpy as np
import pytest

from logeval.errors import LogevalError
from logeval.policies.shared.steps import discount_of, steps_in_memory, window_of
from logeval.tracks.ranking.problems import b_lb
from tests.policies.running import make, steps, users_of


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
        for name in ("SW-dcmKL-UCB(tau=2000)", "D-dcmKL-UCB(gamma=1)", "dcmKL-UCB(init=rounds)")
    }
    assert max(found.values()) < 1.2 * min(found.values())
