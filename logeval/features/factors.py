"""Truncated singular value decomposition of the click matrix, and vectors of norm at most 1.

A = U S V' (gl-cdcm, section 4.2): row j of V describes item j, row i of U S the user i. Only
min(users, items) singular values exist, and fewer that are not 0: a smaller rank than asked for
is used, and said.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from logeval import seeds
from logeval.arrays import Floats

SMALL = 1e-9  # singular values below this share of the largest are 0
DENSE = 2000  # a smaller side than this is decomposed whole


@dataclass(frozen=True)
class Factors:
    """The d largest singular values, and the vectors of users and items that belong to them."""

    users: Floats  # (users, d) rows of U S: the clicks of a user, projected
    values: Floats  # (d,) descending
    items: Floats  # (items, d) rows of V


def truncated_svd(A: sparse.csr_array, d: int, seed: int = 0) -> Factors:
    """The d largest singular values of A, fewer where the rank is smaller.

    Signs are chosen so that the largest entry of every item vector's column is positive; the
    same seed gives the same bits.
    """
    smaller = min(A.shape)
    if smaller <= max(DENSE, 2 * d):
        U, s, Vt = _dense_svd(A)
    else:
        v0 = seeds.generator(seed, "svd").standard_normal(smaller)
        U, s, Vt = (np.asarray(part, dtype=np.float64) for part in svds(A, k=d, v0=v0))
        order = np.argsort(-s, kind="stable")
        U, s, Vt = U[:, order], s[order], Vt[order]
    rank = int(np.sum(s[:d] > SMALL * s.max(initial=0.0)))
    U, s, Vt = U[:, :rank], s[:rank], Vt[:rank]
    signs = np.sign(Vt[np.arange(rank), np.abs(Vt).argmax(axis=1)])
    return Factors(U * (s * signs), s, (Vt * signs[:, None]).T.copy())


def _dense_svd(A: sparse.csr_array) -> tuple[Floats, Floats, Floats]:
    """All singular values, through the smaller of A A' and A' A, which is all that is dense."""
    if A.shape[0] < A.shape[1]:
        V, s, Ut = _dense_svd(A.T.tocsr())
        return Ut.T, s, V.T
    values, V = np.linalg.eigh((A.T @ A).toarray())
    order = np.argsort(-values, kind="stable")
    s = np.sqrt(np.maximum(values[order], 0.0))
    V = V[:, order]
    keep = s > 1e-7 * s.max(initial=0.0)  # a square root of rounding errors is no singular value
    s, V = s[keep], V[:, keep]
    return (A @ V) / s, s, V.T


def scaled(vectors: Floats) -> Floats:
    """All vectors times one number, so that the longest has norm 1."""
    longest = np.sqrt((vectors**2).sum(axis=1).max(initial=0.0))
    return vectors / longest if longest > 0.0 else vectors


def normalised(vectors: Floats) -> Floats:
    """Every vector with norm 1; zero vectors stay."""
    norm = np.sqrt((vectors**2).sum(axis=1, keepdims=True))
    return np.divide(vectors, norm, out=np.zeros_like(vectors), where=norm > 0.0)
