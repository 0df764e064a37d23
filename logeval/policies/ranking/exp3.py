# mypy: allow-untyped-defs
"""RankedExp3: one Exp3 per position, whose reward is the click there.

Position k draws an item from P(e) = (1 - gamma) W(e) / sum W + gamma / L. After a click
on it W(e) is multiplied by exp(gamma / (L P(e))); without a click nothing changes
(Auer et al. 1995; dcm-bandits, section 5.3). gamma = min(1, sqrt(L ln L / ((e - 1) n))), their
Corollary 4.2 with the horizon n as the bound on the reward.

On a collision the position draws from its own distribution among the items still free
(collision=best), or shows a random free item without credit (collision=random). Sums of W over
blocks of items make a draw cost L / 32 + 32 additions.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numba import njit

from logeval.arrays import Floats, Ints
from logeval.errors import LogevalError
from logeval.policies.ranking.ranked import random_free
from logeval.policies.setting import Setting
from logeval.uniforms import Uniforms

BLOCK = 32
LARGEST = 1e100  # weights are scaled down beyond this


@njit(cache=True, nogil=True)
def draw(u, gamma, W, blocks, total, taken, listed, k, mass):
    """An item from P among those not in ``taken``; listed[:k] are the taken ones."""
    L = W.shape[0]
    share, floor = (1.0 - gamma) / total, gamma / L
    n_blocks = blocks.shape[0]
    for j in range(n_blocks):
        mass[j] = share * blocks[j] + floor * (min((j + 1) * BLOCK, L) - j * BLOCK)
    for i in range(k):
        mass[listed[i] // BLOCK] -= share * W[listed[i]] + floor
    left = 0.0
    for j in range(n_blocks):
        left += max(mass[j], 0.0)
    left *= u
    j = 0
    while j < n_blocks - 1 and left >= mass[j]:
        left -= max(mass[j], 0.0)
        j += 1
    last = -1
    for e in range(j * BLOCK, min((j + 1) * BLOCK, L)):
        if not taken[e]:
            last = e
            left -= share * W[e] + floor
            if left < 0.0:
                return e
    return last if last >= 0 else random_free(u, taken, L, k)  # rounding at the end of a block


@njit(cache=True, nogil=True)
def recommend_rows(
    best, gamma, start, W, block_start, blocks, total, taken, nothing, mass, u, A, chosen
):
    """The list of each replica, and what its bandits drew."""
    K = A.shape[1]
    for r in range(A.shape[0]):
        L = start[r * K + 1] - start[r * K]
        for k in range(K):
            i = r * K + k
            w = W[start[i] : start[i + 1]]
            b = blocks[block_start[i] : block_start[i + 1]]
            if best:
                e = draw(u[r, k], gamma[r], w, b, total[i], taken, A[r], k, mass)
                chosen[r, k] = e
            else:
                e = draw(u[r, k], gamma[r], w, b, total[i], nothing, A[r], 0, mass)
                chosen[r, k] = e
                if taken[e]:
                    e = random_free(u[r, K + k], taken, L, k)
            taken[e] = True
            A[r, k] = e
        taken[:L] = False


@njit(cache=True, nogil=True)
def reweigh(e, gamma, W, blocks, total):
    """The weights after a click on item e; returns their sum."""
    L = W.shape[0]
    P = (1.0 - gamma) * W[e] / total + gamma / L
    W[e] *= math.exp(gamma / (L * P))
    if W[e] > LARGEST:
        W /= LARGEST
        for j in range(blocks.shape[0]):
            blocks[j] = W[j * BLOCK : (j + 1) * BLOCK].sum()
    else:
        j = e // BLOCK
        blocks[j] = W[j * BLOCK : (j + 1) * BLOCK].sum()
    return blocks.sum()


@njit(cache=True, nogil=True)
def update_rows(A, clicks, chosen, gamma, start, W, block_start, blocks, total):
    """``reweigh`` for each click on a bandit's own choice."""
    K = A.shape[1]
    for r in range(A.shape[0]):
        for k in range(K):
            if clicks[r, k] and A[r, k] == chosen[r, k]:
                i = r * K + k
                w = W[start[i] : start[i + 1]]
                b = blocks[block_start[i] : block_start[i + 1]]
                total[i] = reweigh(chosen[r, k], gamma[r], w, b, total[i])


class RankedExp3:
    """Ranked bandits with Exp3; ``gamma`` is its share of uniform exploration."""

    PARAMETERS: ClassVar = {"gamma": float, "collision": ("best", "random")}

    def __init__(
        self, setting: Setting, *, gamma: float | None = None, collision: str = "best"
    ) -> None:
        R, K, L = setting.R, setting.K, setting.L
        if gamma is not None and not 0.0 < gamma <= 1.0:
            raise LogevalError(f"RankedExp3: gamma={gamma} must be above 0 and at most 1")
        self._best = collision == "best"
        self._gamma = np.full(R, gamma) if gamma else auer_gamma(L, setting.horizon)
        self._start = np.concatenate([[0], np.cumsum(np.repeat(L, K))]).astype(np.int64)
        blocks = -(-np.repeat(L, K) // BLOCK)
        self._block_start = np.concatenate([[0], np.cumsum(blocks)]).astype(np.int64)
        self._W = np.ones(self._start[-1])
        sizes = [min(BLOCK, n - j) for n in np.repeat(L, K) for j in range(0, n, BLOCK)]
        self._blocks = np.array(sizes, dtype=float)
        self._total = np.repeat(L, K).astype(float)
        self._taken = np.zeros(max(L), dtype=np.bool_)
        self._nothing = np.zeros_like(self._taken)
        self._mass = np.empty(max(blocks))
        self._uniforms = Uniforms(setting.generators, K if self._best else 2 * K)
        self._A = np.empty((R, K), dtype=np.int64)
        self._chosen = np.empty((R, K), dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        recommend_rows(
            self._best, self._gamma, self._start, self._W, self._block_start, self._blocks,
            self._total, self._taken, self._nothing, self._mass, self._uniforms.at(t), self._A,
            self._chosen,
        )  # fmt: skip
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks on the lists A, the last ones recommended."""
        update_rows(
            A, clicks, self._chosen, self._gamma, self._start, self._W, self._block_start,
            self._blocks, self._total,
        )  # fmt: skip


def auer_gamma(L: Ints, n: int) -> Floats:
    """min(1, sqrt(L ln L / ((e - 1) n)))."""
    return np.minimum(1.0, np.sqrt(L * np.log(L) / ((np.e - 1.0) * n)))
