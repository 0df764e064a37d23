"""CascadeDUCB, CascadeSWUCB, D-dcmKL-UCB, SW-dcmKL-UCB: bandits that forget.

They recommend the K items with the largest upper confidence bounds, from the steps that they
remember: the last tau (SW), or all, a step one older with gamma times the weight (D). T is how
often an item was surely examined in them, S its clicks, m the number of steps remembered:

- CascadeSWUCB: S / T + sqrt(eps ln m / T), m = min(t, tau)
- CascadeDUCB: S / T + 2 sqrt(eps ln m / T), m = 1 + gamma + gamma^2 + ..., t - 1 terms
- the others: KL-UCB with the budget ln m + 3 ln ln m

An item of which nothing is remembered comes first. Cascade: up to the first click; dcm: up to the
last one, and all clicks count. (Li, de Rijke, IJCAI 2019; Garivier, Moulines, ALT 2011.)
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from logeval.policies.setting import Setting
from logeval.policies.shared import bounds
from logeval.policies.shared.kernel_policy import KernelPolicy, floats, ints
from logeval.policies.shared.options import discount_of, positions, steps_in_memory, window_of
from logeval.policies.shared.places import insert_best, show
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import ZERO, njit_inline

NEAR_1 = 1.0 - 1e-9  # a bound above is as good as 1
CANNOT = 1e-9  # more than the rounding of a bound


class Memory(NamedTuple):
    """Of one replica."""

    S: Floats = floats("L")  # clicks on each item
    T: Floats = floats("L")  # how often it was examined
    window: Ints = ints("tau", "K", fill=-1, dtype=np.int32)  # 2 item + click; -1: not examined
    order: Ints = ints("K", shared=True)  # the position of the k-th largest bound
    held: Ints = ints("K", shared=True)
    U: Floats = floats("K", shared=True)  # their bounds


@njit_inline
def recommend_one(now, u, mine, A):
    """The K items with the largest bounds at budget b."""
    _, kind, b, _, _ = now
    S, T, K = mine.S, mine.T, A.shape[0]
    size = ZERO
    for e in range(S.shape[0]):
        if T[e] == 0.0:
            size = insert_best(mine.held, mine.U, size, e, math.inf)
            continue
        if kind == bounds.KL and size == K:  # most need no root: is the bound above the last?
            bar = mine.U[K - 1] - CANNOT
            if bar > NEAR_1 or (S[e] < bar * T[e] and T[e] * bounds.kl(S[e] / T[e], bar) > b):
                continue
        bound = bounds.upper(kind, S[e], T[e], b)
        if kind == bounds.KL:
            bound = min(bound, NEAR_1)
        size = insert_best(mine.held, mine.U, size, e, bound)
    show(mine.held, mine.order, A)


@njit_inline
def learn_one(now, mine, A, clicks):
    """Forget the oldest step, and count what was surely examined in the newest."""
    slot, _, _, gamma, all_clicks = now
    K, S, T, window = A.shape[0], mine.S, mine.T, mine.window
    if gamma < 1.0:
        for e in range(S.shape[0]):
            T[e] *= gamma
            S[e] *= gamma
    end = K - 1
    for k in range(K):
        if clicks[k]:
            end = k
            if not all_clicks:
                break
    for k in range(K):
        if slot >= 0 and window[slot, k] >= 0:
            T[window[slot, k] // 2] -= 1.0
            S[window[slot, k] // 2] -= window[slot, k] % 2
        if k <= end:
            T[A[k]] += 1.0
            S[A[k]] += clicks[k]
        if slot >= 0:
            window[slot, k] = 2 * A[k] + clicks[k] if k <= end else -1


class Forgetting(KernelPolicy):
    """Upper confidence bounds from the steps that are remembered; ``order`` as for dcmKL-UCB."""

    KNOWS, COST = "how fast users change", "L"
    LATE = True
    KERNELS = Memory(), recommend_one, learn_one
    KIND: ClassVar[int] = bounds.UCB1
    ALL_CLICKS: ClassVar[bool] = False

    def __init__(self, setting: Setting, given: dict[str, Any], tau: int = 0) -> None:
        super().__init__(setting, given, sizes={"tau": tau})
        self.memory.order[:] = positions(self.given.order, setting.K)
        self.tau, self.gamma = tau, 1.0

    def steps(self, t: int) -> float:
        """How many are remembered at step t."""
        return float(min(t, self.tau))

    def budget(self, m: float) -> float:
        """That of the bounds."""
        if self.KIND == bounds.KL:
            return max(math.log(m) + 3.0 * math.log(math.log(m)), 0.0) if m > 1.0 else 0.0
        return float(self.given.eps * max(math.log(m), 0.0))

    def now(self, t: int) -> tuple[Any, ...]:
        """Where the window is written, and the rule."""
        slot = (t - 1) % self.tau if self.tau else -1
        return slot, self.KIND, self.budget(self.steps(t)), self.gamma, self.ALL_CLICKS


class SlidingWindow(Forgetting):
    """The last ``tau`` steps."""

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given, window_of(given.get("tau"), setting.horizon))


class Discounted(Forgetting):
    """A step one older weighs ``gamma`` times as much."""

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given)
        self.gamma = discount_of(self.given.gamma, setting.horizon)

    def steps(self, t: int) -> float:
        """1 + gamma + ..., of the steps before."""
        return max(steps_in_memory(t, self.gamma), 1.0)


class CascadeSWUCB(SlidingWindow):
    """CascadeUCB1 on the last ``tau`` steps."""

    NAME, PAPER, READS = "CascadeSWUCB", "Li, de Rijke, IJCAI 2019", "up to the first click"
    PARAMETERS: ClassVar = {"tau": int, "eps": 0.5, "order": "descending"}


class CascadeDUCB(Discounted):
    """CascadeUCB1 whose steps weigh ``gamma`` times as much when one older."""

    NAME, PAPER, READS = "CascadeDUCB", "Li, de Rijke, IJCAI 2019", "up to the first click"
    PARAMETERS: ClassVar = {"gamma": float, "eps": 0.5, "order": "descending"}

    def budget(self, m: float) -> float:
        """Twice the radius is four times the budget."""
        return 4.0 * super().budget(m)


class SlidingDcmKLUCB(SlidingWindow):
    """dcmKL-UCB on the last ``tau`` steps."""

    NAME, PAPER, READS = "SW-dcmKL-UCB", "dcmKL-UCB with a window", "up to the last click"
    PARAMETERS: ClassVar = {"tau": int, "order": "descending"}
    KIND, ALL_CLICKS = bounds.KL, True


class DiscountedDcmKLUCB(Discounted):
    """dcmKL-UCB whose steps weigh ``gamma`` times as much when one older."""

    NAME, PAPER, READS = "D-dcmKL-UCB", "dcmKL-UCB with a discount", "up to the last click"
    PARAMETERS: ClassVar = {"gamma": float, "order": "descending"}
    KIND, ALL_CLICKS = bounds.KL, True
