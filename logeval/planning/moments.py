"""First and second moments of what one search earns, exactly.

With credits s_k for a click at position k, X = sum_k s_k c_k. From the last position to the first,
with m and q the moments of what is still to come (after a click m', q', after a skip m'', q''),

    E X   = p (s + m') + (1 - p) m''
    E X^2 = p (s^2 + 2 s m' + q') + (1 - p) q''.

Credits of 1 count clicks. Of users that differ, both are means over the classes.
"""

from __future__ import annotations

import numpy as np

from logeval.clicks.models.users.browsing import Browsing
from logeval.clicks.models.users.chain import Chain
from logeval.clicks.models.users.mixture import Users, classes_of
from logeval.running.arrays import Floats, Ints


def credit_moments(users: Users, A: Ints, credit: Floats) -> tuple[Floats, Floats]:
    """E X and E X^2 of each list of rows (n, K) with its credits (n, K)."""
    share, classes = classes_of(users)
    each = [
        _of_chain(one, A, credit) if isinstance(one, Chain) else _of_browsing(one, A, credit)
        for one in classes
    ]
    first, second = (share @ np.stack(column) for column in zip(*each, strict=True))
    return first, second


def metric_moments(users: Users, A: Ints, metric: str) -> tuple[Floats, Floats]:
    """E Y and E Y^2 of clicks, of satisfaction, or of any click."""
    if metric == "clicks":
        return credit_moments(users, A, np.ones(A.shape))
    p = users.expected_reward(A, metric)
    return p, p  # 0 or 1


def _of_chain(users: Chain, A: Ints, credit: Floats) -> tuple[Floats, Floats]:
    w = users.w[A]
    stay = users.stay_item[A] * users.stay_position[: A.shape[1]]
    m, q = np.zeros(len(A)), np.zeros(len(A))
    for k in reversed(range(A.shape[1])):
        p, s, on = w[:, k], credit[:, k], stay[:, k]
        q = p * (s**2 + 2.0 * s * on * m + on * q) + (1.0 - p) * users.skip * q
        m = p * (s + on * m) + (1.0 - p) * users.skip * m
    return m, q


def _of_browsing(users: Browsing, A: Ints, credit: Floats) -> tuple[Floats, Floats]:
    n, K = A.shape
    w = users.w[A]
    m, q = np.zeros((n, K + 1)), np.zeros((n, K + 1))  # by the previous click
    for k in reversed(range(K)):
        p, s = w[:, k, None] * users.e[k, : k + 1], credit[:, k, None]
        after_m, after_q = m[:, k + 1, None], q[:, k + 1, None]
        q[:, : k + 1] = p * (s**2 + 2.0 * s * after_m + after_q) + (1.0 - p) * q[:, : k + 1]
        m[:, : k + 1] = p * (s + after_m) + (1.0 - p) * m[:, : k + 1]
    return m[:, 0], q[:, 0]
