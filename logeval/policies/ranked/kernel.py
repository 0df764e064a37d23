"""RankedUCB1 and RankedKL-UCB: one bandit per position, whose reward is the click there.

Radlinski, Kleinberg, Joachims: Learning diverse rankings with multi-armed bandits (ICML 2008).
From the first position down each bandit chooses an item. When that item stands higher up
already (a collision), the position shows

- collision=best: the best item of its own bandit among those still free, and learns from it.
  This reproduces the factor of three to dcmKL-UCB of dcm-bandits, section 5.2.
- collision=random: a random free item, and the bandit's choice earns nothing (Radlinski's rule).
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from logeval.policies.setting import Setting
from logeval.policies.shared import bounds
from logeval.policies.shared.lazy_topk import Bandit, select, touch
from logeval.policies.shared.memory import ints, several, view_of
from logeval.policies.shared.policy import KernelPolicy
from logeval.running.arrays import Bools, Ints
from logeval.running.kernels import njit_inline, njit_views


@njit_views
def random_free(u, taken, n_taken):
    """The free item at the uniform u's place among the free ones."""
    L = taken.shape[0]
    skip = min(int(u * (L - n_taken)), L - n_taken - 1)
    for e in range(L):
        if not taken[e]:
            if skip == 0:
                return e
            skip -= 1
    return -1


class Memory(NamedTuple):
    """Of one replica."""

    bandits: Bandit = several(Bandit(), "K", K=1)  # one per position, which looks for its best item
    chosen: Ints = ints("K")  # by the bandit of each position
    taken: Bools = ints("L", shared=True, dtype=np.bool_)  # items on the list
    nothing: Bools = ints("L", shared=True, dtype=np.bool_)  # none


bandit_of = view_of(Bandit())


@njit_inline
def recommend_one(now, u, mine, A):
    """From the first position down, each bandit's choice, or a free item instead."""
    t, b, kind, best, rounds = now
    taken, L = mine.taken, mine.taken.shape[0]
    for k in range(A.shape[0]):
        if rounds and t <= L:
            e = mine.chosen[k] = (t - 1 + k) % L
        else:
            arms = bandit_of(k, L, mine.bandits)
            select(kind, b, taken if best else mine.nothing, arms)
            e = mine.chosen[k] = arms.held[0]
            if taken[e]:
                e = random_free(u[k], taken, k)
        taken[e] = True
        A[k] = e
    taken[:] = False


@njit_inline
def learn_one(now, mine, A, clicks):
    """Each bandit's choice earns the click on it, and nothing if it was not shown."""
    for k in range(A.shape[0]):
        arms, e = bandit_of(k, mine.taken.shape[0], mine.bandits), mine.chosen[k]
        arms.T[e] += 1.0
        if clicks[k] and A[k] == e:
            arms.S[e] += 1.0
        touch(e, arms)


class Ranked(KernelPolicy):
    """One bandit with upper confidence bounds per position.

    ``init`` is "rounds", L real rounds in which every item is once at every position, or "sample",
    one free observation of every item for every position.
    """

    PAPER = "Radlinski et al., ICML 2008"
    KNOWS, READS, COST = "nothing", "all clicks", "L K"
    PARAMETERS: ClassVar = {"collision": ("best", "random"), "init": ("rounds", "sample")}
    NEEDS: ClassVar = ("free_samples",)
    KERNELS = Memory(), recommend_one, learn_one
    KIND: ClassVar[int]

    def __init__(self, setting: Setting, **given: Any) -> None:
        best = given.get("collision", "best") == "best"
        super().__init__(setting, given, uniforms=0 if best else setting.K)
        self.rule = self.KIND, best, self.given.init == "rounds"
        if self.given.init == "sample":
            free_samples = setting.ask("free_samples")
            self.memory.bandits.T[:] = 1.0
            for r, L in enumerate(setting.L):
                self.memory.bandits.S[r, :, :L] = free_samples(r, setting.K)

    def now(self, t: int) -> tuple[Any, ...]:
        """The step, its budget, and the rule."""
        return t, bounds.BUDGETS[self.KIND](t), *self.rule


class RankedUCB1(Ranked):
    """Ranked bandits with UCB1."""

    NAME, FIGURE = "RankedUCB1", 5
    KIND = bounds.UCB1


class RankedKLUCB(Ranked):
    """Ranked bandits with KL-UCB."""

    NAME, FIGURE = "RankedKL-UCB", 1
    KIND = bounds.KL
