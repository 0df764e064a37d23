"""Vectors of users and items -> contexts x of norm at most 1, each with a constant.

| context     | x                          |
|-------------|----------------------------|
| `item`      | (1, v_j) / sqrt 2          |
| `user+item` | (1, v_j, u_i) / sqrt 3     |
| `user*item` | (1, v_j, p_i x q_j) / sqrt 3 |

v_j and u_i are the vectors of item j and user i, p_i and q_j their leading ``r`` entries with
norm 1, and x the outer product. Concatenation cannot change a ranking: theta . u_i is the same
for all items of a round. The outer product can. Without the constant an item that was never
clicked, whose vector is 0, would keep a predicted attraction of 1/2 for ever.

Truncated singular value decomposition of the click matrix, and vectors of norm at most 1.

A = U S V' (gl-cdcm, section 4.2): row j of V describes item j, row i of U S the user i. Only
min(users, items) singular values exist, and fewer that are not 0: a smaller rank than asked for
is used, and said. Of users and items, the fewer have their vectors in memory; a vector of the
others is computed from its clicks when it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from logeval.running import seeds
from logeval.running.arrays import Floats, Ints

ITEM, USER_AND_ITEM, USER_TIMES_ITEM = CONTEXTS = ("item", "user+item", "user*item")


def dimension(context: str, d: int, r: int) -> int:
    """The length of x for item vectors of length d and products of r by r entries."""
    return 1 + d + {ITEM: 0, USER_AND_ITEM: d, USER_TIMES_ITEM: r * r}[context]


def item_contexts(items: Floats) -> Floats:
    """(L, 1 + d) the contexts that know the item alone."""
    return np.column_stack([np.ones(len(items)), items]) / np.sqrt(2.0)


SMALL = 1e-7  # singular values below this share of the largest are square roots of rounding errors
DENSE = 2000  # a smaller side than this is decomposed whole
BLOCK = 4096  # vectors that are looked at together


@dataclass(frozen=True)
class Vectors:
    """The vectors of all users, or of all items: the rows of ``left @ right * times``."""

    left: sparse.csr_array  # (users or items, n)
    right: Floats  # (n, d), which users and items share
    times: Floats  # (d,)

    def of(self, rows: Ints | slice) -> Floats:
        """Some of the vectors."""
        return (self.left[rows] @ self.right) * self.times

    def blocks(self) -> list[slice]:
        """All rows, a few at a time."""
        n = self.left.shape[0]
        return [slice(i, min(i + BLOCK, n)) for i in range(0, n, BLOCK)]

    def scaled(self, rows: Ints | slice) -> Floats:
        """Some of the vectors, times one number with which the longest of all has norm 1."""
        longest = max(np.linalg.norm(self.of(block), axis=1).max() for block in self.blocks())
        return self.of(rows) / longest if longest > 0.0 else self.of(rows)

    def signs(self) -> Floats:
        """(d,) the sign of the largest entry of every column."""
        largest = np.zeros(self.right.shape[1])
        for block in self.blocks():
            found = self.of(block)
            top = np.take_along_axis(found, np.abs(found).argmax(axis=0)[None], axis=0)[0]
            largest = np.where(np.abs(top) > np.abs(largest), top, largest)
        return np.sign(largest)


@dataclass(frozen=True)
class Factors:
    """The d largest singular values, and the vectors of users and items that belong to them."""

    users: Vectors  # (users, d) rows of U S: the clicks of a user, projected
    values: Floats  # (d,) descending
    items: Vectors  # (items, d) rows of V


def truncated_svd(A: sparse.csr_array, d: int, seed: int = 0) -> Factors:
    """The d largest singular values of A, fewer where the rank is smaller.

    Signs are chosen so that the largest entry of every item vector's column is positive; the
    same seed gives the same bits.
    """
    fewer_users = A.shape[0] < A.shape[1]
    s, W = _right_vectors(A.T if fewer_users else A, d, seed)
    held = sparse.eye_array(len(W), format="csr")
    if fewer_users:
        users, items = Vectors(held, W, s), Vectors(A.T.tocsr(), W, 1 / s)
    else:
        users, items = Vectors(A, W, np.ones(len(s))), Vectors(held, W, np.ones(len(s)))
    signs = items.signs()
    return Factors(
        replace(users, times=users.times * signs), s, replace(items, times=items.times * signs)
    )


def _right_vectors(
    B: sparse.csr_array | sparse.csc_array, d: int, seed: int
) -> tuple[Floats, Floats]:
    """The d largest singular values of B and, as columns, their right singular vectors.

    They are the eigenvectors of B'B. Where that is large, Lanczos' method multiplies by it without
    making it. It keeps a quarter more vectors than are asked for: ARPACK's default of twice as many
    takes as many steps.
    """
    n = B.shape[1]
    if n <= max(DENSE, 2 * d):
        values, W = np.linalg.eigh((B.T @ B).toarray())
    else:
        gram = LinearOperator((n, n), matvec=lambda x: B.T @ (B @ x), dtype=np.float64)
        v0 = seeds.generator(seed, "svd").standard_normal(n)
        values, W = eigsh(gram, k=d, v0=v0, ncv=d + max(d // 4, 20))
    order = np.argsort(-values, kind="stable")[:d]
    s = np.sqrt(np.maximum(values[order], 0.0))
    order = order[s > SMALL * s.max(initial=0.0)]
    return s[: len(order)], W[:, order]


def normalised(vectors: Floats) -> Floats:
    """Every vector with norm 1; zero vectors stay."""
    norm = np.sqrt((vectors**2).sum(axis=1, keepdims=True))
    return np.divide(vectors, norm, out=np.zeros_like(vectors), where=norm > 0.0)
