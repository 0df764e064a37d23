"""RankedUCB1, RankedKL-UCB, RankedExp3: one bandit per position, whose reward is the click there.

Radlinski, Kleinberg, Joachims: Learning diverse rankings with multi-armed bandits (ICML 2008).
From the first position down each bandit chooses an item. When that item stands higher up
already (a collision), the position shows

- collision=best: the best item of its own bandit among those still free, and learns from it.
  This reproduces the factor of three to dcmKL-UCB of dcm-bandits, section 5.2.
- collision=random: a random free item, and the bandit's choice earns nothing (Radlinski's rule).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from logeval.errors import LogevalError
from logeval.policies.setting import Setting
from logeval.policies.shared import bounds
from logeval.policies.shared.kernel_policy import (
    KernelPolicy,
    floats,
    ints,
    of_items,
    several,
    view_of,
)
from logeval.policies.shared.topk import Bandit, select, touch
from logeval.running.arrays import Bools, Floats, Ints
from logeval.running.kernels import ZERO, njit_inline, njit_views


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
    """A UCB1 bandit for each position."""

    NAME, FIGURE = "RankedUCB1", 5
    KIND = bounds.UCB1


class RankedKLUCB(Ranked):
    """A KL-UCB bandit for each position."""

    NAME, FIGURE = "RankedKL-UCB", 1
    KIND = bounds.KL


BLOCK = 32
LARGEST = 1e100  # weights are scaled down beyond this


def n_blocks(L: int) -> int:
    """How many blocks L items have."""
    return -(-L // BLOCK)


class Weights(NamedTuple):
    """The bandits of the positions of one replica."""

    W: Floats = floats("K", of_items, fill=1.0)
    blocks: Floats = floats("K", n_blocks)  # sums of W over blocks of items; 0 behind the last
    total: Floats = floats("K")  # and over all items
    gamma: Floats = floats(1)
    chosen: Ints = ints("K")  # by the bandit of each position
    P: Floats = floats("K")  # with this probability
    taken: Bools = ints("L", shared=True, dtype=np.bool_)  # items on the list
    nothing: Bools = ints("L", shared=True, dtype=np.bool_)  # none
    gone: Floats = floats(n_blocks, shared=True)  # P of the taken items of a block; 0 between draws


@njit_inline
def draw(u, k, taken, listed, n_taken, mine):
    """An item from P among those not in ``taken``, and the probability with which it is drawn.

    listed[:n_taken] are the taken ones.
    """
    W, blocks, gone, gamma, L = mine.W[k], mine.blocks[k], mine.gone, mine.gamma[0], taken.shape[0]
    share, floor = (1.0 - gamma) / mine.total[k], gamma / L
    free = 1.0
    for i in range(n_taken):
        p = share * W[listed[i]] + floor
        gone[listed[i] // BLOCK] += p
        free -= p
    free = max(free, floor * (L - n_taken))  # what rounding may have taken
    left = free * u
    j, last_block = 0, (L - 1) // BLOCK
    while j < last_block:
        mass = share * blocks[j] + floor * BLOCK - gone[j]
        if left < mass:
            break
        left -= max(mass, 0.0)
        j += 1
    for i in range(n_taken):
        gone[listed[i] // BLOCK] = 0.0
    last = -1
    for e in range(j * BLOCK, min((j + 1) * BLOCK, L)):
        if not taken[e]:
            last = e
            left -= share * W[e] + floor
            if left < 0.0:
                break
    if last < 0:  # rounding at the end of a block
        last = random_free(u, taken, n_taken)
    return last, min((share * W[last] + floor) / free, 1.0)


@njit_inline
def recommend_exp3(now, u, mine, A):
    """From the first position down, what each bandit draws, or a free item instead."""
    (best,), K, taken = now, A.shape[0], mine.taken
    for k in range(K):
        if best:
            e, mine.P[k] = draw(u[k], k, taken, A, k, mine)
            mine.chosen[k] = e
        else:
            e, mine.P[k] = draw(u[k], k, mine.nothing, A, ZERO, mine)
            mine.chosen[k] = e
            if taken[e]:
                e = random_free(u[K + k], taken, k)
        taken[e] = True
        A[k] = e
    taken[:] = False


@njit_views
def total(x, first, end):
    """The sum of x[first:end]; that of NumPy takes a tenth of a second more to compile."""
    found = 0.0
    for i in range(first, end):
        found += x[i]
    return found


@njit_inline
def reweigh(k, mine):
    """The weights of the bandit of position k after a click on its choice."""
    W, blocks, L = mine.W[k, : mine.taken.shape[0]], mine.blocks[k], mine.taken.shape[0]
    e = mine.chosen[k]
    W[e] *= math.exp(mine.gamma[0] / (L * mine.P[k]))
    first, end = e // BLOCK, e // BLOCK + 1
    if W[e] > LARGEST:
        first, end = ZERO, blocks.shape[0]
        for i in range(L):
            W[i] /= LARGEST
    for j in range(first, end):
        blocks[j] = total(W, j * BLOCK, min((j + 1) * BLOCK, L))
    mine.total[k] = total(blocks, ZERO, blocks.shape[0])


@njit_inline
def learn_exp3(now, mine, A, clicks):
    """``reweigh`` for each click on a bandit's own choice."""
    for k in range(A.shape[0]):
        if clicks[k] and A[k] == mine.chosen[k]:
            reweigh(k, mine)


class RankedExp3(KernelPolicy):
    """An Exp3 bandit for each position; ``gamma`` is its share of uniform exploration.

    Position k draws an item from P(e) = (1 - gamma) W(e) / sum W + gamma / L. After a click
    on it W(e) is multiplied by exp(gamma / (L P)), where P is the probability with which it was
    drawn; without a click nothing changes (Auer et al. 1995; dcm-bandits, section 5.3).
    gamma = min(1, sqrt(L ln L / ((e - 1) n))), their Corollary 4.2 with the horizon n as the bound
    on the reward.

    On a collision the position draws from its own distribution among the items still free, so P is
    P(e) over the sum of P of these (collision=best), or shows a random free item without credit
    (collision=random). Sums of W over blocks of items make a draw cost L / 32 + 32 additions.
    """

    NAME, PAPER = "RankedExp3", "Radlinski et al., ICML 2008"
    KNOWS, READS, COST = "horizon", "all clicks", "L K"
    FIGURE = 2
    PARAMETERS: ClassVar = {"gamma": float, "collision": ("best", "random")}
    KERNELS = Weights(), recommend_exp3, learn_exp3

    def __init__(self, setting: Setting, **given: Any) -> None:
        best = given.get("collision", "best") == "best"
        super().__init__(setting, given, uniforms=setting.K if best else 2 * setting.K)
        gamma, weights = self.given.gamma, self.memory
        if gamma is not None and not 0.0 < gamma <= 1.0:
            raise LogevalError(f"RankedExp3: gamma={gamma} must be above 0 and at most 1")
        weights.gamma[:, 0] = gamma or auer_gamma(setting.L, setting.horizon)
        weights.total[:] = setting.L[:, None]
        for j in range(weights.blocks.shape[2]):
            weights.blocks[:, :, j] = np.clip(setting.L - j * BLOCK, 0, BLOCK)[:, None]
        self.rule = (best,)


def auer_gamma(L: Ints, n: int) -> Floats:
    """min(1, sqrt(L ln L / ((e - 1) n)))."""
    return np.minimum(1.0, np.sqrt(L * np.log(L) / ((math.e - 1.0) * n)))
