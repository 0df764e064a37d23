# mypy: allow-untyped-defs
"""UCB1, KL-UCB and UCB1Elim on all pairs (item, position), without their structure.

UCB1: mean + sqrt(2 log t / T) (Auer, Cesa-Bianchi, Fischer 2002). KL-UCB: as in
``policies.bounds``. Both show every pair once first. UCB1Elim (Auer and Ortner 2010): in stage m
every remaining pair is shown until it has n_m = ceil(2 log(n D^2) / D^2) observations; pairs with
mean + r < max(mean - r), r = sqrt(log(n D^2) / (2 n_m)), are eliminated; D = 2^-m. After stage
floor(log2(n / e) / 2) the remaining pairs are shown in turn.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numba import njit

from logeval.arrays import Ints
from logeval.policies import bounds
from logeval.policies.lazy_first import (
    UNTIL,
    ManyArms,
    select_first,
    select_first_eager,
    touch_first,
)
from logeval.policies.setting import Setting


@njit(cache=True, nogil=True)
def recommend_index(
    t, lazy, kind, b, K, start, S, T, block_start, key, blocks, state, memo, pair, A
):  # fmt: skip
    """The pair with the largest bound of each replica; at first each pair once."""
    for r in range(A.shape[0]):
        a, z = start[r], start[r + 1]
        if t <= z - a:
            arm = t - 1
        elif lazy:
            mine = blocks[block_start[r] : block_start[r + 1]]
            arm = select_first(kind, b, S[a:z], T[a:z], key[a:z], mine, state[r], memo)
        else:
            arm = select_first_eager(kind, b, S[a:z], T[a:z])
        A[r, 0], A[r, 1] = pair[a + arm] // K, pair[a + arm] % K


@njit(cache=True, nogil=True)
def update_index(kind, A, clicks, K, label, start, S, T, block_start, key, blocks, state):
    """Count the click of each replica's pair."""
    for r in range(A.shape[0]):
        a, z = start[r], start[r + 1]
        arm = label[a + A[r, 0] * K + A[r, 1]]
        T[a + arm] += 1.0
        S[a + arm] += clicks[r, 0]
        if state[r, UNTIL] > 0.0:
            mine = blocks[block_start[r] : block_start[r + 1]]
            touch_first(kind, arm, S[a:z], T[a:z], key[a:z], mine, state[r])


class PairIndex:
    """Upper confidence bounds on pairs."""

    PARAMETERS: ClassVar[dict] = {}
    TRACK: ClassVar[str] = "rank1"
    KIND: ClassVar[int]

    def __init__(self, setting: Setting, *, lazy: bool = True) -> None:
        self._K, self._lazy = int(setting.columns[0]), lazy
        n = setting.rows * setting.columns
        self._arms = ManyArms(n)
        pairs = [g.permutation(m) for g, m in zip(setting.generators, n, strict=True)]
        self._pair = np.concatenate(pairs)
        self._label = np.concatenate([np.argsort(p) for p in pairs])
        self._A = np.empty((setting.R, 2), dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The pairs (R, 2) of step t."""
        b = bounds.kl_budget(t) if self.KIND == bounds.KL else 2.0 * math.log(t)
        arms = self._arms
        recommend_index(
            t, self._lazy, self.KIND, b, self._K, arms.start, arms.S, arms.T, arms.block_start,
            arms.key, arms.blocks, arms.state, arms.memo, self._pair, self._A,
        )  # fmt: skip
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks (R, 1) on the pairs A."""
        arms = self._arms
        update_index(
            self.KIND, A, clicks, self._K, self._label, arms.start, arms.S, arms.T,
            arms.block_start, arms.key, arms.blocks, arms.state,
        )  # fmt: skip


class PairUCB1(PairIndex):
    """UCB1 on all pairs."""

    KIND = bounds.UCB1


class PairKLUCB(PairIndex):
    """KL-UCB on all pairs."""

    KIND = bounds.KL


STAGE, CURSOR, PULLS, N_LEFT = range(4)  # PULLS: rounds over the remaining pairs in this stage


@njit(cache=True, nogil=True)
def stage_end(stage, n):
    """n_m of UCB1Elim."""
    D2 = 4.0**-stage
    return math.ceil(2.0 * math.log(n * D2) / D2)


@njit(cache=True, nogil=True)
def eliminate_pairs(n, s, S, left):
    """The end of a stage: drop pairs, and set the length of the next."""
    stage = s[STAGE]
    n_m = stage_end(stage, n)
    radius = math.sqrt(math.log(n * 4.0**-stage) / (2.0 * n_m))
    best = 0.0
    for i in range(s[N_LEFT]):
        best = max(best, S[left[i]] / n_m)
    kept = 0
    for i in range(s[N_LEFT]):
        if S[left[i]] / n_m + radius >= best - radius:
            left[kept] = left[i]
            kept += 1
    s[N_LEFT] = kept
    s[STAGE] += 1
    if s[STAGE] <= int(0.5 * math.log2(n / math.e)):
        s[PULLS] = stage_end(s[STAGE], n) - n_m
    else:
        s[PULLS] = -1  # the last stage: go on in turn


@njit(cache=True, nogil=True)
def update_elimination(n, A, clicks, K, start, S, left, state):
    """Count the click, and move on to the next pair, or stage."""
    for r in range(A.shape[0]):
        a, z = start[r], start[r + 1]
        s = state[r]
        S[a + A[r, 0] * K + A[r, 1]] += clicks[r, 0]
        s[CURSOR] += 1
        if s[CURSOR] == s[N_LEFT]:
            s[CURSOR] = 0
            s[PULLS] -= 1
            if s[PULLS] == 0:
                eliminate_pairs(n, s, S[a:z], left[a:z])


class UCB1Elim:
    """Elimination of pairs."""

    PARAMETERS: ClassVar[dict] = {}
    TRACK: ClassVar[str] = "rank1"

    def __init__(self, setting: Setting) -> None:
        n = setting.rows * setting.columns
        self._K, self._n = int(setting.columns[0]), max(setting.horizon, 3)
        self._start = np.concatenate([[0], np.cumsum(n)]).astype(np.int64)
        self._left = np.concatenate(
            [g.permutation(m) for g, m in zip(setting.generators, n, strict=True)]
        )
        self._S = np.zeros(self._start[-1])
        self.state = np.zeros((setting.R, 4), dtype=np.int64)
        self.state[:, PULLS], self.state[:, N_LEFT] = stage_end(0, self._n), n
        self._A = np.empty((setting.R, 2), dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The pairs (R, 2) of step t."""
        pair = self._left[self._start[:-1] + self.state[:, CURSOR]]
        np.divmod(pair, self._K, out=(self._A[:, 0], self._A[:, 1]))
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks (R, 1) on the pairs A, the last ones recommended."""
        update_elimination(
            self._n, A, clicks, self._K, self._start, self._S, self._left, self.state
        )  # fmt: skip

    def remaining(self) -> Ints:
        """(R, 2) the rows and columns of the pairs that are not eliminated."""
        ends = self._start[:-1] + self.state[:, N_LEFT]
        left = [self._left[a:z] for a, z in zip(self._start[:-1], ends, strict=True)]
        return np.array([[len(set(p // self._K)), len(set(p % self._K))] for p in left])
