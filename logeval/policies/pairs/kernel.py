"""UCB1 and KL-UCB on all pairs (item, position), without their structure.

UCB1: mean + sqrt(2 log t / T) (Auer, Cesa-Bianchi, Fischer 2002). KL-UCB: as in
``shared.bounds`` (Garivier and Cappe 2011). Both show every pair once first.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from logeval.policies.pairs.lazy_argmax import BEGIN, KeyedArms, select_first, touch_first
from logeval.policies.setting import Setting
from logeval.policies.shared import bounds
from logeval.policies.shared.policy import KernelPolicy
from logeval.running.kernels import njit_inline


@njit_inline
def recommend_one(now, u, arms, A):
    """The pair with the largest bound at budget b; at first each pair once."""
    t, b, kind, K = now
    arm = t - 1 if t <= arms.S.shape[0] else select_first(kind, b, arms)
    A[0], A[1] = arm // K, arm % K


@njit_inline
def learn_one(now, arms, A, clicks):
    """Count the click on a pair."""
    _, _, kind, K = now
    arm = A[0] * K + A[1]
    arms.T[arm] += 1.0
    arms.S[arm] += clicks[0]
    touch_first(kind, arm, arms)


class PairIndex(KernelPolicy):
    """Upper confidence bounds on pairs."""

    KNOWS, READS, COST = "nothing", "the click", "L K"
    TRACK = "rank1"
    KERNELS = KeyedArms(), recommend_one, learn_one
    KIND: ClassVar[int]

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, {}, items=setting.rows * setting.columns)
        self.memory.state[:] = BEGIN
        self.rule = self.KIND, int(setting.columns[0])

    def now(self, t: int) -> tuple[Any, ...]:
        """The step, its budget, and the rule."""
        b = bounds.kl_budget(t) if self.KIND == bounds.KL else 2.0 * math.log(t)
        return t, b, *self.rule


class PairUCB1(PairIndex):
    """UCB1 on all pairs."""

    NAME, PAPER = "UCB1", "Auer et al. 2002"
    FIGURE = 13
    KIND = bounds.UCB1


class PairKLUCB(PairIndex):
    """KL-UCB on all pairs."""

    NAME, PAPER = "KL-UCB", "Garivier and Cappe 2011"
    FIGURE = 14
    KIND = bounds.KL
