"""Clicks and views of every item at every position."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_inline, njit_views


class ItemPositions(NamedTuple):
    """Clicks and views of items at positions, of all replicas or of one."""

    S: Ints  # (L, K)
    T: Ints  # (L, K)
    value: Floats  # (L, K) rho, or its upper bound


def no_cells(R: int, L: int, K: int) -> ItemPositions:
    """Nothing seen yet."""
    return ItemPositions(
        np.zeros((R, L, K), dtype=np.int64),
        np.zeros((R, L, K), dtype=np.int64),
        np.zeros((R, L, K)),
    )


@njit_inline
def cells_of(r, L, cells):
    """Those of replica r, which has L items."""
    return ItemPositions(cells.S[r, :L], cells.T[r, :L], cells.value[r, :L])


@njit_views
def count(held, c, cells):
    """Count the views and clicks of a list."""
    for k in range(held.shape[0]):
        cells.T[held[k], k] += 1
        cells.S[held[k], k] += c[k]
