"""Options that several policies have: the order of positions, and what forgetting needs to know."""

from __future__ import annotations

import math

import numpy as np

from logeval.errors import LogevalError
from logeval.running.arrays import Ints

ORDER = "position order (1 to K)"  # what a policy with this option must know


def positions(order: str, K: int) -> Ints:
    """The position (from 0) of the k-th largest bound."""
    if order == "descending":
        return np.arange(K)
    if order == "ascending":
        return np.arange(K)[::-1].copy()
    try:
        given = np.array([int(p) - 1 for p in order.split(">")])
    except ValueError:
        given = np.empty(0, dtype=np.int64)
    if sorted(given.tolist()) != list(range(K)):
        example = ">".join(str(k) for k in range(K, 0, -1))
        raise LogevalError(
            f"order={order}: write descending, ascending, or all {K} positions like {example}"
        )
    return given


def window_of(tau: int | None, n: int) -> int:
    """Steps remembered; the default is 2 sqrt(n ln n), for one change in n steps."""
    if tau is None:
        return max(1, math.ceil(2.0 * math.sqrt(n * math.log(n)))) if n > 1 else 1
    if tau < 1:
        raise LogevalError(f"tau={tau}: the window must have at least one step")
    return min(tau, n)


def discount_of(gamma: float | None, n: int) -> float:
    """Weight of a step that is one step older; the default is 1 - 1 / (4 sqrt n)."""
    if gamma is None:
        return 1.0 - 0.25 / math.sqrt(n)
    if not 0.0 < gamma <= 1.0:
        raise LogevalError(f"gamma={gamma:g}: must be above 0 and at most 1")
    return gamma


def steps_in_memory(t: int, gamma: float) -> float:
    """1 + gamma + ... of the t - 1 steps before step t."""
    return float(t - 1) if gamma == 1.0 else (1.0 - gamma ** (t - 1)) / (1.0 - gamma)


def exploration_of(p: float | None, L: int, n: int) -> int:
    """Steps from one round of exploration to the next, floor(L / p).

    The default is p = sqrt(L ln n / n) / 10: theory has the root, with one change, and the tenth is
    customary for likelihood ratio tests (docs/evidence.md).
    """
    if p is None:
        p = 0.1 * math.sqrt(L * math.log(max(n, 2)) / n)
    if not 0.0 <= p <= 1.0:
        raise LogevalError(f"p={p:g}: must be from 0 to 1")
    return max(L, math.floor(L / min(p, 1.0))) if p > 0.0 else 0


def error_of(delta: float | None, n: int) -> float:
    """The false alarms that a test allows; the default is 1 / n."""
    if delta is None:
        return 1.0 / n
    if not 0.0 < delta < 1.0:
        raise LogevalError(f"delta={delta:g}: must be between 0 and 1")
    return delta
