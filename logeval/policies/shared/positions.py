"""The option ``order``: which position gets the best item, which the second, and so on."""

from __future__ import annotations

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
