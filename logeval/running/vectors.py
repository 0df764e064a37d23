"""Small kernels that environments and policies with contexts share."""

from __future__ import annotations

from typing import Any

import numpy as np

from logeval.running.kernels import COMMON, njit, njit_views

# Sums may be reordered, so that they use vector instructions.
njit_sums: Any = njit(fastmath={"reassoc", "contract"}, **COMMON)


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
