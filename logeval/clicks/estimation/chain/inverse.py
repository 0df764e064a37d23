"""Inverses of information matrices."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from logeval.running.arrays import Floats
from logeval.running.kernels import njit

SMALL = 128  # matrices up to this size are inverted without BLAS


def inverse_of(J: Floats) -> Floats:
    """The inverse of a symmetric matrix; directions without information get a huge variance."""
    if not len(J):
        return J
    ridge = 1e-9 * max(float(np.abs(np.diag(J)).max()), 1.0)
    inverse = np.empty_like(J)
    if len(J) <= SMALL and invert_small(J + ridge * np.eye(len(J)), inverse):
        return inverse
    factor, failed = lapack.dpotrf(J + ridge * np.eye(len(J)), lower=1)
    if failed:
        values, vectors = np.linalg.eigh(J)
        return (vectors / np.maximum(values, ridge)) @ vectors.T
    inverse, _ = lapack.dpotri(factor, lower=1)
    return np.tril(inverse) + np.tril(inverse, -1).T


@njit(cache=True, nogil=True)
def invert_small(J: Floats, inverse: Floats) -> bool:
    """Inverse by Cholesky without the threads of a BLAS, which cost more than small matrices."""
    N = J.shape[0]
    C = np.zeros((N, N))
    for i in range(N):
        for j in range(i + 1):
            x = J[i, j]
            for k in range(j):
                x -= C[i, k] * C[j, k]
            if i > j:
                C[i, j] = x / C[j, j]
            elif x <= 0.0:
                return False
            else:
                C[i, i] = np.sqrt(x)
    for j in range(N):  # C becomes its own inverse
        C[j, j] = 1.0 / C[j, j]
        for i in range(j + 1, N):
            x = 0.0
            for k in range(j, i):
                x -= C[i, k] * C[k, j]
            C[i, j] = x / C[i, i]
    for i in range(N):
        for j in range(i + 1):
            x = 0.0
            for k in range(i, N):
                x += C[k, i] * C[k, j]
            inverse[i, j] = x
            inverse[j, i] = x
    return True
