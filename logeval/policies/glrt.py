"""GLRT-CascadeUCB, GLRT-CascadeKL-UCB: start again when a test says that an item has changed.

With s steps since the last start, the K items with the largest bounds: UCB1, which is
S / T + sqrt(1.5 log s / T), or KL-UCB with log s + 3 log log s. Of every floor(L / p) steps the
first L show each item at the best position once, so that a change of an item that
is not shown is noticed. After every step the items that were surely examined (up to the first
click) are tested: if some split of an item's observations has a likelihood ratio above
log(3 n^1.5 / delta), everything is forgotten. Wang et al., arXiv 1909.05886,
Algorithms 1 and 2; docs/evidence.md says what was not settled.

Not all splits are tried. After n observations with X clicks, of which x in the first s, the
statistic of a split is

    s d(x / s, X / n) + (n - s) d((X - x) / (n - s), X / n),

a sum of two perspectives of a convex function: convex in the point (s, x), and 0 at both ends. Its
maximum over the points of a walk is therefore at a corner of their convex hull, and a walk of n
steps has some 2 log n of those. Two chains keep them, the corners above and those below.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

from logeval.policies.setting import Setting
from logeval.policies.shared import bounds
from logeval.policies.shared.bounds import kl
from logeval.policies.shared.kernel_policy import KernelPolicy, floats, ints
from logeval.policies.shared.options import error_of, exploration_of, positions
from logeval.policies.shared.places import insert_best, show
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import ZERO, njit_inline, njit_views

CORNERS = 128  # of a chain: 12 are expected after 100,000 steps; the last would make room


class Walks(NamedTuple):
    """The observations of each item as a walk of points (steps, clicks)."""

    n: Ints = ints("L")  # steps
    X: Ints = ints("L")  # clicks
    size: Ints = ints("L", 2)  # corners above and below; the first point is (0, 0)
    corner: Ints = ints("L", 2, CORNERS, 2)


@njit_views
def add(e, click, walks):
    """One more observation of item e."""
    walks.n[e] += 1
    walks.X[e] += click
    n, X = walks.n[e], walks.X[e]
    for side in range(2):
        sign = 1 - 2 * side  # the chain below is the one above, upside down
        corner, size = walks.corner[e, side], walks.size[e, side]
        while size > 0:
            before_s = corner[size - 2, 0] if size > 1 else 0
            before_x = corner[size - 2, 1] if size > 1 else 0
            s, x = corner[size - 1, 0], corner[size - 1, 1]
            turn = (s - before_s) * (X - before_x) - (x - before_x) * (n - before_s)
            if sign * turn < 0:
                break
            size -= 1  # on or inside the line from the corner before to the new point
        size = min(size, CORNERS - 1)
        corner[size, 0], corner[size, 1] = n, X
        walks.size[e, side] = size + 1


@njit_views
def changed(e, delta, walks):
    """Whether the mean of item e has changed."""
    n, X = walks.n[e], walks.X[e]
    if n < 2:
        return False
    threshold, mean = math.log(3.0 * n * math.sqrt(n) / delta), X / n
    for side in range(2):
        for i in range(walks.size[e, side] - 1):
            s, x = walks.corner[e, side, i, 0], walks.corner[e, side, i, 1]
            first, second = kl(x / s, mean), kl((X - x) / (n - s), mean)
            if s * first + (n - s) * second >= threshold:
                return True
    return False


@njit_views
def forget(walks):
    """All items begin anew."""
    for e in range(walks.n.shape[0]):
        walks.n[e] = walks.X[e] = walks.size[e, 0] = walks.size[e, 1] = 0


class Memory(NamedTuple):
    """Of one replica."""

    walks: Walks = Walks()
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
        add(A[k], clicks[k], mine.walks)
        alarm = alarm or changed(A[k], delta, mine.walks)
        if clicks[k]:
            break
    if alarm:
        forget(mine.walks)
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
    """UCB1 bounds that start again when a test finds a change (Algorithm 2)."""

    NAME = "GLRT-CascadeUCB"
    KIND = bounds.UCB1


class GLRTCascadeKLUCB(GLRT):
    """KL-UCB bounds that start again when a test finds a change."""

    NAME = "GLRT-CascadeKL-UCB"
    KIND = bounds.KL
