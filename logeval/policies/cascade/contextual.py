"""dcmKL-UCB in the contextual track, where it sees items and not their features.

Each query has its own bandit, so a query that comes back is remembered. With
``restart=block`` nothing is: a new block is a new ground set, as in the stairs of gl-cdcm,
Figure 2.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from logeval.policies.contextual.base import LEARNING, TERMINATION, ContextualPolicy
from logeval.policies.setting import Setting
from logeval.policies.shared import bounds
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_views


@njit_views
def bounds_rows(b, arm, S, T, U):
    """The KL-UCB of each item; 1 for an item never observed."""
    for r in range(U.shape[0]):
        for a in range(U.shape[1]):
            e = arm[r, a]
            U[r, a] = bounds.upper(bounds.KL, S[r, e], T[r, e], b) if T[r, e] > 0.0 else 1.0


@njit_views
def count_rows(arm, A, clicks, C, S, T):
    """Count the observed items and their clicks."""
    for r in range(A.shape[0]):
        for k in range(C[r]):
            e = arm[r, A[r, k]]
            T[r, e] += 1.0
            S[r, e] += clicks[r, k]


class ContextualKLUCB(ContextualPolicy):
    """dcm-bandits, Algorithm 1, on the ground set of the round."""

    KNOWS = TERMINATION
    PARAMETERS: ClassVar = {"restart": ("never", "block"), **LEARNING}

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given)
        self._S, self._T = np.zeros((2, setting.R, self._contexts.arms))
        self._steps = np.zeros(self._contexts.queries, dtype=np.int64)  # of each query so far
        self._block, self._U = 0, np.empty((setting.R, self._contexts.widest))

    def _scores(self, t: int) -> Floats:
        now = self._now
        if self.given.restart == "block" and now.block != self._block:
            self._S[:], self._T[:], self._steps[:] = 0.0, 0.0, 0
            self._block = now.block
        self._steps[now.query] += 1
        U = self._U[:, : now.arm.shape[1]]
        b = bounds.kl_budget(int(self._steps[now.query]))
        bounds_rows(b, now.arm, self._S, self._T, U)
        return U

    def _learn(self, t: int, A: Ints, clicks: Ints, C: Ints) -> None:
        count_rows(self._now.arm, A, clicks, C, self._S, self._T)
