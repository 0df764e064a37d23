"""GLRT-CascadeUCB, GLRT-CascadeKL-UCB: start again when a test says that an item has changed.

With s steps since the last start, the K items with the largest bounds: UCB1, which is
S / T + sqrt(1.5 log s / T), or KL-UCB with log s + 3 log log s. Of every floor(L / p) steps the
first L show each item at the best position once, so that a change of an item that
is not shown is noticed. After every step the items that were surely examined (up to the first
click) are tested: if some split of an item's observations has a likelihood ratio above
log(3 n^1.5 / delta), everything is forgotten (``glrt.hull``). Wang et al., arXiv 1909.05886,
Algorithms 1 and 2; docs/measured.md says what was not settled.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

from logeval.policies.glrt import hull
from logeval.policies.setting import Setting
from logeval.policies.shared import bounds
from logeval.policies.shared.memory import floats, ints
from logeval.policies.shared.places import insert_best, show
from logeval.policies.shared.policy import KernelPolicy
from logeval.policies.shared.positions import positions
from logeval.policies.shared.steps import error_of, exploration_of
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import ZERO, njit_inline


class Memory(NamedTuple):
    """Of one replica."""

    walks: hull.Walks = hull.Walks()
    start: Ints = ints(1)  # the step of the last start
    round: Ints = ints(1)  # steps from one round of exploration to the next; 0: there is none
    order: Ints = ints("K", shared=True)  # the position of the k-th largest bound
    held: Ints = ints("K", shared=True)
    U: Floats = floats("K", shared=True)  # their bounds


@njit_inline
def recommend_one(now, u, mine, A):
    """The K items with the largest bounds; in a round each is first, once."""
    t, kind, _ = now
    walks, s, L = mine.walks, t - mine.start[0], mine.walks.n.shape[0]
    b = math.log(s) if s > 1 else 0.0
    if kind == bounds.UCB1:
        b *= 1.5
    elif s > 1:
        b = max(b + 3.0 * math.log(b), 0.0)
    forced = -1
    if mine.round[0] > 0 and (s - 1) % mine.round[0] < L:
        forced = (s - 1) % mine.round[0]
    size = ZERO
    for e in range(L):
        if e != forced:
            T, bound = float(walks.n[e]), math.inf
            if T > 0.0:
                bound = bounds.upper(kind, float(walks.X[e]), T, b)
            size = insert_best(mine.held, mine.U, size, e, bound)
    if forced >= 0:
        for k in range(A.shape[0] - 1, 0, -1):
            mine.held[k] = mine.held[k - 1]
        mine.held[0] = forced
    show(mine.held, mine.order, A)


@njit_inline
def learn_one(now, mine, A, clicks):
    """Observe up to the first click, and start again if one of these items has changed."""
    t, _, delta = now
    K, alarm = A.shape[0], False
    for k in range(K):
        hull.add(A[k], clicks[k], mine.walks)
        alarm = alarm or hull.changed(A[k], delta, mine.walks)
        if clicks[k]:
            break
    if alarm:
        hull.forget(mine.walks)
        mine.start[0] = t


class GLRT(KernelPolicy):
    """Bounds, rounds of exploration with probability ``p``, and tests with error ``delta``."""

    KNOWS, READS, COST = "nothing of the changes", "up to the first click", "L + K log n"
    PAPER = "Wang et al., AAAI 2021"
    LATE = True
    PARAMETERS: ClassVar = {"p": float, "delta": float, "order": "descending"}
    KERNELS = Memory(), recommend_one, learn_one
    KIND: ClassVar[int]

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given)
        n = setting.horizon
        self.memory.order[:] = positions(self.given.order, setting.K)
        for r, L in enumerate(setting.L):
            self.memory.round[r] = exploration_of(self.given.p, int(L), n)
        self.rule = self.KIND, error_of(self.given.delta, n)

    def now(self, t: int) -> tuple[Any, ...]:
        """The step and the rule."""
        return t, *self.rule


class GLRTCascadeUCB(GLRT):
    """Algorithm 2 with UCB1."""

    NAME = "GLRT-CascadeUCB"
    KIND = bounds.UCB1


class GLRTCascadeKLUCB(GLRT):
    """Algorithm 2 with KL-UCB."""

    NAME = "GLRT-CascadeKL-UCB"
    KIND = bounds.KL
