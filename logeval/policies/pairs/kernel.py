"""UCB1 and KL-UCB on all pairs (item, position), without their structure.

UCB1: mean + sqrt(2 log t / T) (Auer, Cesa-Bianchi, Fischer 2002). KL-UCB: as in
``shared.bounds`` (Garivier and Cappe 2011). Both show every pair once first.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from logeval.policies.pairs import paper
from logeval.policies.pairs.lazy_argmax import (
    KeyedArms,
    KeyedBandits,
    keyed_arms_of,
    select_first,
    select_first_eager,
    touch_first,
)
from logeval.policies.setting import Setting
from logeval.policies.shared import bounds
from logeval.policies.shared.lazy_topk import Starts, plain
from logeval.running.arrays import Ints
from logeval.running.kernels import njit_inline, njit_views


@njit_inline
def recommend_one(t, b, kind, lazy, arms, memo):
    """The arm with the largest bound at budget b; at first each arm once."""
    if t <= arms.S.shape[0]:
        return t - 1
    if lazy:
        return select_first(kind, b, arms, memo)
    return select_first_eager(kind, b, arms)


@njit_inline
def observe_one(arm, click, kind, arms):
    """Count the click on an arm."""
    arms.T[arm] += 1.0
    arms.S[arm] += click
    touch_first(kind, arm, arms)


@njit_views
def recommend_all(t, b, kind, lazy, K, A, memo, starts, arms):
    """``recommend_one`` for each replica."""
    starts, arms = Starts(*starts), KeyedArms(*arms)
    for r in range(A.shape[0]):
        arm = recommend_one(t, b, kind, lazy, keyed_arms_of(r, starts, arms), memo)
        A[r, 0], A[r, 1] = arm // K, arm % K


@njit_views
def observe_all(kind, K, A, clicks, starts, arms):
    """``observe_one`` for each replica."""
    starts, arms = Starts(*starts), KeyedArms(*arms)
    for r in range(A.shape[0]):
        arm = A[r, 0] * K + A[r, 1]
        observe_one(arm, clicks[r, 0], kind, keyed_arms_of(r, starts, arms))


class PairIndex:
    """Upper confidence bounds on pairs."""

    KNOWS, READS, COST = "nothing", "the click", "L K"
    TRACK = "rank1"
    KIND: ClassVar[int]

    def __init__(self, setting: Setting, *, lazy: bool = True) -> None:
        self._K, self._lazy = int(setting.columns[0]), lazy
        n = setting.rows * setting.columns
        bandits = KeyedBandits(n)
        self._memo, self._state = bandits.memo, plain(bandits.starts, bandits.arms)
        self._A = np.empty((setting.R, 2), dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The pairs (R, 2) of step t."""
        b = bounds.kl_budget(t) if self.KIND == bounds.KL else 2.0 * math.log(t)
        recommend_all(t, b, self.KIND, self._lazy, self._K, self._A, self._memo, *self._state)
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks (R, 1) on the pairs A."""
        observe_all(self.KIND, self._K, A, clicks, *self._state)


class PairUCB1(PairIndex):
    """UCB1 on all pairs."""

    NAME, PAPER = "UCB1", "Auer et al. 2002"
    REFERENCE, FIGURE = paper.UCB1, 13
    KIND = bounds.UCB1


class PairKLUCB(PairIndex):
    """KL-UCB on all pairs."""

    NAME, PAPER = "KL-UCB", "Garivier and Cappe 2011"
    REFERENCE, FIGURE = paper.KLUCB, 14
    KIND = bounds.KL
