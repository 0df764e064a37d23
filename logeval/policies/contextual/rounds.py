"""What policies of the contextual track do with a round: scores into lists, clicks into rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_views
from logeval.running.vectors import best_first_rows, dot

FEEDBACK = ("dcm", "literal", "first")
DCM, LITERAL, FIRST = range(3)


@njit_views
def observed_one(feedback, clicks):
    """C, the number of positions to learn from.

    ``dcm``: up to the last click, all K without one (as dcmKL-UCB); ``literal``: up to the last
    click, none without one (gl-cdcm, Algorithm 1 as printed); ``first``: up to the first click,
    all K without one (CascadeLinUCB).
    """
    K = clicks.shape[0]
    C = 0 if feedback == LITERAL else K
    for k in range(K):
        if clicks[k]:
            C = k + 1
            if feedback == FIRST:
                break
    return C


@njit_views
def observed_rows(feedback, clicks, C):
    """``observed_one`` for each replica."""
    for r in range(C.shape[0]):
        C[r] = observed_one(feedback, clicks[r])


@njit_views
def inner_rows(X, table, row, theta, z):
    """z[r, a] = theta_r . x_a."""
    for r in range(z.shape[0]):
        for a in range(z.shape[1]):
            z[r, a] = dot(X[table[r], row[r, a]], theta[r])


@njit_views
def take_rows_into(values, row, out):
    """out[r, a] = values[r, row[r, a]]."""
    for r in range(row.shape[0]):
        for a in range(row.shape[1]):
            out[r, a] = values[r, row[r, a]]


def take_rows(values: Floats, row: Ints, out: Floats) -> Floats:
    """What the items of a round have among the values (R, M) of all rows; (R, L), in out."""
    out = out[:, : row.shape[1]]
    take_rows_into(values, row, out)
    return out


class Lists:
    """Turns scores into lists."""

    def __init__(self, R: int, K: int, uniforms: Callable[[int], Floats]) -> None:
        self._uniforms = uniforms
        self._top = np.empty(K, dtype=np.int64)
        self._A = np.empty((R, K), dtype=np.int64)

    def best_first(self, t: int, score: Floats, order: Ints) -> Ints:
        """The lists (R, K) of the items with the largest scores (R, L)."""
        best_first_rows(score, self._uniforms(t), order, self._top, self._A)
        return self._A
