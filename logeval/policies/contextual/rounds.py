"""What a policy of the contextual track is shown each round, and what all of them do with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import COMMON, njit, njit_views

FEEDBACK = ("dcm", "literal", "first")
DCM, LITERAL, FIRST = range(3)
# Sums may be reordered, so that they use vector instructions.
njit_sums: Any = njit(fastmath={"reassoc", "contract"}, **COMMON)


class Round(NamedTuple):
    """The ground set of a round, for all replicas.

    The context of item a of replica r is ``X[table[r], row[r, a]]``. Where contexts repeat, a row
    of X is always the same item of the same query; else X is written anew for every round.
    """

    X: Floats  # (tables, M, d)
    table: Ints  # (R,)
    row: Ints  # (R, L)
    arm: Ints  # (R, L) the item, numbered through over all queries, for who ignores contexts
    order: Ints  # (R, K) positions from the most to the least terminating
    query: int  # number of the query that is asked
    block: int  # number of the block: each block of rounds asks one query


class Contexts(Protocol):
    """The capability ``contexts``: what the environment tells in addition to the clicks."""

    d: int  # length of a context
    M: int  # rows of X
    arms: int  # items of all queries
    queries: int
    widest: int  # items of the largest ground set
    repeat: bool  # whether a row of X stays the same item

    def at(self, t: int) -> Round:
        """The round t."""


@njit_sums
def dot(x, y):
    """x . y."""
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@njit_views
def sigmoid(z):
    """mu(z) = 1 / (1 + exp(-z))."""
    if z >= 0.0:
        return 1.0 / (1.0 + np.exp(-z))
    e = np.exp(z)
    return e / (1.0 + e)


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
def best_first_one(score, u, order, top, A):
    """The K largest scores, the k-th largest at the k-th most terminating position.

    Equal scores are ordered by the random numbers u. ``top`` holds the best so far, sorted.
    """
    K, held = A.shape[0], 0
    for a in range(score.shape[0]):
        k = held
        while k > 0:
            b = top[k - 1]
            if score[a] < score[b] or (score[a] == score[b] and u[a] <= u[b]):
                break
            if k < K:
                top[k] = b
            k -= 1
        if k < K:
            top[k] = a
            held = min(held + 1, K)
    for k in range(K):
        A[order[k]] = top[k]


@njit_views
def best_first_rows(score, u, order, top, A):
    """``best_first_one`` for each replica."""
    for r in range(A.shape[0]):
        best_first_one(score[r], u[r], order[r], top, A[r])


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
