# mypy: allow-untyped-defs
"""RankedUCB1 and RankedKL-UCB: one bandit per position, whose reward is the click there.

Radlinski, Kleinberg, Joachims: Learning diverse rankings with multi-armed bandits (ICML 2008).
From the first position down each bandit chooses an item. When that item stands higher up
already (a collision), the position shows

- collision=best: the best item of its own bandit among those still free, and learns from it.
  This reproduces the factor of three to dcmKL-UCB of dcm-bandits, section 5.2.
- collision=random: a random free item, and the bandit's choice earns nothing (Radlinski's rule).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numba import njit

from logeval.arrays import Ints
from logeval.policies import bounds
from logeval.policies.lazy_topk import Arms, select, touch
from logeval.policies.setting import Setting
from logeval.uniforms import Uniforms


@njit(cache=True, nogil=True)
def random_free(u, taken, L, n_taken):
    """The free item at the uniform u's place among the L - n_taken free ones."""
    skip = min(int(u * (L - n_taken)), L - n_taken - 1)
    for e in range(L):
        if not taken[e]:
            if skip == 0:
                return e
            skip -= 1
    return -1


@njit(cache=True, nogil=True)
def recommend_rows(t, rounds, best, lazy, kind, b, selection, nothing, item, u, A, chosen):
    """The list of each replica, and what its bandits chose (labels)."""
    start, held = selection[0], selection[4]
    taken = selection[3]
    K = A.shape[1]
    for r in range(A.shape[0]):
        L = start[r * K + 1] - start[r * K]
        a = start[r * K] // K  # labels are shared by the K bandits of a replica
        for k in range(K):
            if rounds and t <= L:
                e = chosen[r, k] = (t - 1 + k) % L
            elif best:
                select(lazy, kind, b, r * K + k, *selection)
                e = chosen[r, k] = held[r * K + k, 0]
            else:
                select_from_all = (*selection[:3], nothing, *selection[4:])
                select(lazy, kind, b, r * K + k, *select_from_all)
                e = chosen[r, k] = held[r * K + k, 0]
                if taken[e]:
                    e = random_free(u[r, k], taken, L, k)
            taken[e] = True
            A[r, k] = item[a + e]
        taken[:L] = False


@njit(cache=True, nogil=True)
def update_rows(A, clicks, chosen, item, start, S, T, block_start, wake, block_wake):
    """Each bandit's choice earns the click on it, and nothing if it was not shown."""
    K = A.shape[1]
    for r in range(A.shape[0]):
        a = start[r * K] // K
        for k in range(K):
            i, e = r * K + k, chosen[r, k]
            arm = start[i] + e
            T[arm] += 1.0
            if clicks[r, k] and A[r, k] == item[a + e]:
                S[arm] += 1.0
            touch(e, wake[start[i] : start[i + 1]], block_wake[block_start[i] : block_start[i + 1]])


class Ranked:
    """One bandit with upper confidence bounds per position.

    ``init`` is "sample", one free observation of every item for every position, or "rounds",
    L real rounds in which every item is once at every position.
    """

    PARAMETERS: ClassVar = {"collision": ("best", "random"), "init": ("sample", "rounds")}
    NEEDS: ClassVar = ("free_samples",)
    KIND: ClassVar[int]

    def __init__(
        self, setting: Setting, *, collision: str = "best", init: str = "sample", lazy: bool = True
    ) -> None:
        R, K = setting.R, setting.K
        self._arms = Arms(np.repeat(setting.L, K), 1)
        self._item, _ = setting.random_labels()
        self._rounds, self._lazy, self._best = init == "rounds", lazy, collision == "best"
        self._budget = bounds.kl_budget if self.KIND == bounds.KL else bounds.ucb1_budget
        self._nothing = np.zeros_like(self._arms.taken)
        self._A = np.empty((R, K), dtype=np.int64)
        self._chosen = np.empty((R, K), dtype=np.int64)
        self._uniforms = None if self._best else Uniforms(setting.generators, K)
        self._no_uniforms = np.empty((R, 0))
        if not self._rounds:
            self._arms.T[:] = 1.0
            free_samples = setting.ask("free_samples")
            first = np.concatenate([[0], np.cumsum(setting.L)])
            for r in range(R):
                items = self._item[first[r] : first[r + 1]]
                free = free_samples(r, K)[:, items]
                self._arms.S[K * first[r] : K * first[r + 1]] = free.ravel()

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        u = self._uniforms.at(t) if self._uniforms else self._no_uniforms
        recommend_rows(
            t, self._rounds, self._best, self._lazy, self.KIND, self._budget(t),
            self._arms.selection, self._nothing, self._item, u, self._A, self._chosen,
        )  # fmt: skip
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks on the lists A, the last ones recommended."""
        arms = self._arms
        update_rows(
            A, clicks, self._chosen, self._item, arms.start, arms.S, arms.T, arms.block_start,
            arms.wake, arms.block_wake,
        )  # fmt: skip


class RankedUCB1(Ranked):
    """Ranked bandits with UCB1."""

    KIND = bounds.UCB1


class RankedKLUCB(Ranked):
    """Ranked bandits with KL-UCB."""

    KIND = bounds.KL
