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
from logeval.running.kernels import njit


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
    stay = users.stay_item[:, None] * users.stay_position[: A.shape[1]]
    m, q = chain_moments(users.w, stay, float(users.skip), A, credit)
    return m, q


@njit(cache=True, nogil=True)
def chain_moments(w, stay, skip, A, credit):
    """E X and E X^2 of each row, by the formulas above; stay (L, K) is after a click."""
    n, K = A.shape
    first, second = np.empty(n), np.empty(n)
    for i in range(n):
        m = q = 0.0
        for k in range(K - 1, -1, -1):
            a, s = A[i, k], credit[i, k]
            p, on = w[a], stay[a, k]
            q = p * (s * s + 2.0 * s * on * m + on * q) + (1.0 - p) * skip * q
            m = p * (s + on * m) + (1.0 - p) * skip * m
        first[i], second[i] = m, q
    return first, second


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
