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

from typing import Any, ClassVar, NamedTuple

import numpy as np

from logeval.errors import LogevalError
from logeval.policies.contextual import LEARNING, TERMINATION, ContextualPolicy
from logeval.policies.setting import Setting
from logeval.policies.shared import bounds
from logeval.policies.shared.kernel_policy import KernelPolicy, ints
from logeval.policies.shared.options import ORDER, positions
from logeval.policies.shared.places import show
from logeval.policies.shared.topk import Bandit, select, touch
from logeval.running.arrays import Bools, Floats, Ints
from logeval.running.kernels import njit_inline, njit_views


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
    """dcmKL-UCB in the contextual track, where it sees items and not their features.

    Each query has its own bandit, so a query that comes back is remembered. With
    ``restart=block`` nothing is: a new block is a new ground set, as in the stairs of gl-cdcm,
    Figure 2.
    """

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


FIRST, ALL, LAST = range(3)  # which clicks count


class Memory(NamedTuple):
    """Of one replica."""

    arms: Bandit = Bandit()
    order: Ints = ints("K")  # the position of the k-th largest bound
    nothing: Bools = ints("L", shared=True, dtype=np.bool_)  # no item is left out


@njit_inline
def recommend_one(now, u, mine, A):
    """The K items with the largest bounds at budget b, onto positions in the given order."""
    b, kind, _ = now
    select(kind, b, mine.nothing, mine.arms)
    show(mine.arms.held, mine.order, A)


@njit_inline
def learn_one(now, mine, A, clicks):
    """Count the positions that were surely examined, and the clicks there that count."""
    _, _, feedback = now
    K, arms = A.shape[0], mine.arms
    first, last = K, K
    for k in range(K):
        if clicks[k]:
            first = min(first, k)
            last = k
    end = min(first if feedback == FIRST else last, K - 1)
    for k in range(end + 1):
        e = A[k]
        arms.T[e] += 1.0
        if clicks[k] and (feedback == ALL or k == end):
            arms.S[e] += 1.0
        touch(e, arms)


class Cascade(KernelPolicy):
    """Upper confidence bounds on items.

    ``order`` puts the items onto positions by decreasing bound ("descending", the k-th largest
    at position k), by increasing bound ("ascending"), onto given positions ("2>1>3" gives the
    largest to position 2), or by the order that each simulated query has ("known"). With ``init``
    "rounds" an item that was never examined has an infinite bound, so real searches show as many of
    these as there is room for, until all were; "sample" is one free observation of every item.
    """

    KNOWS, COST = ORDER, "L"
    LATE = True
    PARAMETERS: ClassVar[dict[str, Any]] = {"order": "descending", "init": ("rounds", "sample")}
    NEEDS: ClassVar = ("free_samples", "position_order")
    KERNELS = Memory(), recommend_one, learn_one
    KIND: ClassVar[int]
    FEEDBACK: ClassVar[int]

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given)
        order, arms = self.given.order, self.memory.arms
        self.memory.order[:] = (
            setting.ask("position_order") if order == "known" else positions(order, setting.K)
        )
        self.rule = self.KIND, self.FEEDBACK
        if self.given.init == "sample":
            free_samples = setting.ask("free_samples")
            arms.T[:] = 1.0
            for r, L in enumerate(setting.L):
                arms.S[r, :L] = free_samples(r, 1)[0]

    def now(self, t: int) -> tuple[Any, ...]:
        """The budget of the step, and the rule."""
        return bounds.BUDGETS[self.KIND](t), *self.rule


class CascadeUCB1(Cascade):
    """The largest UCB1 bounds, learned up to the first click (cascading-bandits, Algorithm 1).

    With ``corruption`` = C > 0 the bounds are C / T wider: then they hold although up to C of the
    clicks on an item are forged (Lykouris, Mirrokni, Paes Leme, STOC 2018, with C known). C clicks
    more at the start are the same.
    """

    NAME, PAPER, READS = "CascadeUCB1", "Kveton et al., ICML 2015", "up to the first click"
    FIGURE = 4
    PARAMETERS: ClassVar = {**Cascade.PARAMETERS, "corruption": 0.0}
    KIND, FEEDBACK = bounds.UCB1, FIRST

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, **given)
        if not 0.0 <= self.given.corruption < 1e12:
            raise LogevalError(f"corruption={self.given.corruption:g}: write a number of clicks")
        self.memory.arms.S[:] += self.given.corruption


class CascadeKLUCB(Cascade):
    """The largest KL-UCB bounds, learned up to the first click."""

    NAME, PAPER, READS = "CascadeKL-UCB", "Kveton et al., ICML 2015", "up to the first click"
    FIGURE = 3
    KIND, FEEDBACK = bounds.KL, FIRST


class CascadeUCBV(Cascade):
    """The same with UCB-V bounds, which are narrow where clicks are rare."""

    NAME, PAPER, READS = "CascadeUCB-V", "Vial et al., NeurIPS 2022", "up to the first click"
    KIND, FEEDBACK = bounds.UCBV, FIRST


class DcmKLUCB(Cascade):
    """The largest KL-UCB bounds, learned from all clicks (dcm-bandits, Algorithm 1)."""

    NAME, PAPER, READS = "dcmKL-UCB", "Katariya et al., ICML 2016", "up to the last click"
    FIGURE = 0
    IN_TRACK: ClassVar = {"contextual": ContextualKLUCB}
    KIND, FEEDBACK = bounds.KL, ALL


class FirstClick(Cascade):
    """dcmKL-UCB that is shown the first click only."""

    NAME, PAPER, READS = "First-Click", "Katariya et al., ICML 2016", "up to the first click"
    FIGURE = 6
    KIND, FEEDBACK = bounds.KL, FIRST


class LastClick(Cascade):
    """dcmKL-UCB that is shown the last click only."""

    NAME, PAPER, READS = "Last-Click", "Katariya et al., ICML 2016", "up to the last click"
    FIGURE = 7
    KIND, FEEDBACK = bounds.KL, LAST
