# mypy: allow-untyped-defs
"""CascadeUCB1, CascadeKL-UCB, dcmKL-UCB, First-Click, Last-Click: one bound per item.

All recommend the K items with the largest upper confidence bounds on their attraction and
learn from the positions that the user surely examined. They differ in the bound and in how
they read the clicks (``FEEDBACK``):

- first: up to the first click, which alone counts (cascading-bandits, Algorithm 1;
  First-Click of dcm-bandits, section 5.2)
- all: up to the last click, all clicks count (dcm-bandits, Algorithm 1)
- last: up to the last click, which alone counts (Last-Click of dcm-bandits, section 5.2)

Without a click all K positions were examined.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numba import njit

from logeval.arrays import Ints
from logeval.errors import LogevalError
from logeval.policies import bounds
from logeval.policies.lazy_topk import Arms, select, touch
from logeval.policies.setting import Setting

FIRST, ALL, LAST = range(3)  # which clicks count


@njit(cache=True, nogil=True)
def recommend_rows(t, rounds, lazy, kind, b, selection, item, order, A):
    """The list of each replica; order[k] is the position of the k-th largest bound."""
    start, held = selection[0], selection[4]
    K = A.shape[1]
    for r in range(A.shape[0]):
        a, L = start[r], start[r + 1] - start[r]
        if rounds and t <= L:
            for k in range(K):
                A[r, k] = item[a + (t - 1 + k) % L]
        else:
            select(lazy, kind, b, r, *selection)
            for k in range(K):
                A[r, order[k]] = item[a + held[r, k]]


@njit(cache=True, nogil=True)
def observe_one(feedback, A, clicks, label, S, T, wake, block_wake):
    """Count the examined items of one list, and the clicks that count."""
    K = A.shape[0]
    first, last = K, K
    for k in range(K):
        if clicks[k]:
            first = min(first, k)
            last = k
    end = min(first if feedback == FIRST else last, K - 1)
    for k in range(end + 1):
        e = label[A[k]]
        T[e] += 1.0
        if clicks[k] and (feedback == ALL or k == end):
            S[e] += 1.0
        touch(e, wake, block_wake)


@njit(cache=True, nogil=True)
def update_rows(t, rounds, feedback, A, clicks, label, start, S, T, block_start, wake, block_wake):
    """``observe_one`` for each replica; in initial rounds only the first position counts."""
    for r in range(A.shape[0]):
        a, z = start[r], start[r + 1]
        x, y = block_start[r], block_start[r + 1]
        end = 1 if rounds and t <= z - a else A.shape[1]
        observe_one(
            feedback, A[r, :end], clicks[r, :end], label[a:z], S[a:z], T[a:z], wake[a:z],
            block_wake[x:y],
        )  # fmt: skip


class Cascade:
    """Upper confidence bounds on items.

    ``order`` puts the items onto positions by decreasing bound ("descending", the k-th largest
    at position k), by increasing bound ("ascending"), or onto given positions: "2>1>3" gives
    the largest to position 2. ``init`` is "sample", one free observation of every item, or
    "rounds", L real rounds in which each item is once at the first position.
    """

    PARAMETERS: ClassVar = {"order": str, "init": ("sample", "rounds")}
    NEEDS: ClassVar = ("free_samples",)
    KIND: ClassVar[int]
    FEEDBACK: ClassVar[int]

    def __init__(
        self,
        setting: Setting,
        *,
        order: str = "descending",
        init: str = "sample",
        lazy: bool = True,
    ) -> None:
        self._arms = Arms(setting.L, setting.K)
        self._item, self._label = setting.random_labels()
        self._order = positions(order, setting.K)
        self._rounds, self._lazy = init == "rounds", lazy
        self._budget = bounds.kl_budget if self.KIND == bounds.KL else bounds.ucb1_budget
        self._A = np.empty((setting.R, setting.K), dtype=np.int64)
        if not self._rounds:
            self._arms.T[:] = 1.0
            free_samples = setting.ask("free_samples")
            free = [free_samples(r, 1)[0] for r in range(setting.R)]
            starts = np.repeat(self._arms.start[:-1], setting.L)
            self._arms.S[:] = np.concatenate(free)[starts + self._item]

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        recommend_rows(
            t, self._rounds, self._lazy, self.KIND, self._budget(t), self._arms.selection,
            self._item, self._order, self._A,
        )  # fmt: skip
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks on the lists A."""
        arms = self._arms
        update_rows(
            t, self._rounds, self.FEEDBACK, A, clicks, self._label, arms.start, arms.S, arms.T,
            arms.block_start, arms.wake, arms.block_wake,
        )  # fmt: skip


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


class CascadeUCB1(Cascade):
    """cascading-bandits, Algorithm 1 with UCB1 bounds."""

    KIND, FEEDBACK = bounds.UCB1, FIRST


class CascadeKLUCB(Cascade):
    """cascading-bandits, Algorithm 1 with KL-UCB bounds."""

    KIND, FEEDBACK = bounds.KL, FIRST


class DcmKLUCB(Cascade):
    """dcm-bandits, Algorithm 1."""

    KIND, FEEDBACK = bounds.KL, ALL


class FirstClick(Cascade):
    """dcmKL-UCB that is shown the first click only."""

    KIND, FEEDBACK = bounds.KL, FIRST


class LastClick(Cascade):
    """dcmKL-UCB that is shown the last click only."""

    KIND, FEEDBACK = bounds.KL, LAST
