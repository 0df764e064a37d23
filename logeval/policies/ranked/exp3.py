"""RankedExp3: one Exp3 per position, whose reward is the click there.

Position k draws an item from P(e) = (1 - gamma) W(e) / sum W + gamma / L. After a click
on it W(e) is multiplied by exp(gamma / (L P)), where P is the probability with which it was
drawn; without a click nothing changes
(Auer et al. 1995; dcm-bandits, section 5.3). gamma = min(1, sqrt(L ln L / ((e - 1) n))), their
Corollary 4.2 with the horizon n as the bound on the reward.

On a collision the position draws from its own distribution among the items still free, so P is P(e)
over the sum of P of these (collision=best), or shows a random free item without credit
(collision=random). Sums of W over blocks of items make a draw cost L / 32 + 32 additions.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from logeval.errors import LogevalError
from logeval.policies.ranked import paper
from logeval.policies.ranked.kernel import random_free
from logeval.policies.setting import Setting
from logeval.policies.shared.lazy_topk import Starts, plain, starts_of
from logeval.running.arrays import Bools, Floats, Ints
from logeval.running.kernels import ZERO, njit_inline, njit_views
from logeval.running.uniforms import Uniforms

BLOCK = 32
LARGEST = 1e100  # weights are scaled down beyond this


class Weights(NamedTuple):
    """Of the bandit of one position; or of those of all replicas, one after the other."""

    W: Floats
    blocks: Floats  # sums of W over blocks of items
    total: Floats  # and over all items, (1,)


class Scratch(NamedTuple):
    """Memory that the replicas share."""

    taken: Bools  # items on the list
    nothing: Bools  # none
    gone: Floats  # probability of the taken items of each block; 0 between draws


@njit_inline
def weights_of(i, starts, weights):
    """The weights of bandit i."""
    return Weights(
        weights.W[starts.arm[i] : starts.arm[i + 1]],
        weights.blocks[starts.block[i] : starts.block[i + 1]],
        weights.total[i : i + 1],
    )


@njit_inline
def draw(u, gamma, weights, taken, listed, k, gone):
    """An item from P among those not in ``taken``, and the probability with which it is drawn.

    listed[:k] are the taken ones.
    """
    W, blocks, L = weights.W, weights.blocks, weights.W.shape[0]
    share, floor = (1.0 - gamma) / weights.total[0], gamma / L
    free = 1.0
    for i in range(k):
        p = share * W[listed[i]] + floor
        gone[listed[i] // BLOCK] += p
        free -= p
    free = max(free, floor * (L - k))  # what rounding may have taken
    left = free * u
    j, last_block = 0, blocks.shape[0] - 1
    while j < last_block:
        mass = share * blocks[j] + floor * BLOCK - gone[j]
        if left < mass:
            break
        left -= max(mass, 0.0)
        j += 1
    for i in range(k):
        gone[listed[i] // BLOCK] = 0.0
    last = -1
    for e in range(j * BLOCK, min((j + 1) * BLOCK, L)):
        if not taken[e]:
            last = e
            left -= share * W[e] + floor
            if left < 0.0:
                break
    if last < 0:  # rounding at the end of a block
        last = random_free(u, taken, L, k)
    return last, min((share * W[last] + floor) / free, 1.0)


@njit_inline
def recommend_one(r, best, gamma, u, starts, weights, scratch, chosen, P, A):
    """From the first position down, what each bandit draws, or a free item instead."""
    K, taken, gone = A.shape[0], scratch.taken, scratch.gone
    L = starts.arm[r * K + 1] - starts.arm[r * K]
    for k in range(K):
        mine = weights_of(r * K + k, starts, weights)
        if best:
            e, P[k] = draw(u[k], gamma, mine, taken, A, k, gone)
            chosen[k] = e
        else:
            e, P[k] = draw(u[k], gamma, mine, scratch.nothing, A, ZERO, gone)
            chosen[k] = e
            if taken[e]:
                e = random_free(u[K + k], taken, L, k)
        taken[e] = True
        A[k] = e
    taken[:L] = False


@njit_inline
def reweigh(e, P, gamma, weights):
    """The weights after a click on item e, which was drawn with probability P."""
    W, blocks, L = weights.W, weights.blocks, weights.W.shape[0]
    W[e] *= math.exp(gamma / (L * P))
    if W[e] > LARGEST:
        W /= LARGEST
        for j in range(blocks.shape[0]):
            blocks[j] = W[j * BLOCK : (j + 1) * BLOCK].sum()
    else:
        j = e // BLOCK
        blocks[j] = W[j * BLOCK : (j + 1) * BLOCK].sum()
    weights.total[0] = blocks.sum()


@njit_inline
def observe_one(r, gamma, starts, weights, chosen, P, A, clicks):
    """``reweigh`` for each click on a bandit's own choice."""
    K = A.shape[0]
    for k in range(K):
        if clicks[k] and A[k] == chosen[k]:
            reweigh(chosen[k], P[k], gamma, weights_of(r * K + k, starts, weights))


@njit_views
def recommend_all(best, gamma, u, A, chosen, P, scratch, starts, weights):
    """``recommend_one`` for each replica."""
    starts, weights, scratch = Starts(*starts), Weights(*weights), Scratch(*scratch)
    for r in range(A.shape[0]):
        recommend_one(r, best, gamma[r], u[r], starts, weights, scratch, chosen[r], P[r], A[r])


@njit_views
def observe_all(gamma, A, clicks, chosen, P, starts, weights):
    """``observe_one`` for each replica."""
    starts, weights = Starts(*starts), Weights(*weights)
    for r in range(A.shape[0]):
        observe_one(r, gamma[r], starts, weights, chosen[r], P[r], A[r], clicks[r])


class RankedExp3:
    """Ranked bandits with Exp3; ``gamma`` is its share of uniform exploration."""

    NAME, PAPER = "RankedExp3", "Radlinski et al., ICML 2008"
    KNOWS, READS, COST = "horizon", "all clicks", "L K"
    REFERENCE, FIGURE = paper.RankedExp3, 2
    PARAMETERS: ClassVar = {"gamma": float, "collision": ("best", "random")}

    def __init__(
        self, setting: Setting, *, gamma: float | None = None, collision: str = "best"
    ) -> None:
        R, K, L = setting.R, setting.K, setting.L
        if gamma is not None and not 0.0 < gamma <= 1.0:
            raise LogevalError(f"RankedExp3: gamma={gamma} must be above 0 and at most 1")
        self._best = collision == "best"
        self._gamma = np.full(R, gamma) if gamma else auer_gamma(L, setting.horizon)
        sizes = np.repeat(L, K)
        starts = starts_of(sizes, BLOCK)
        in_blocks = [min(BLOCK, n - j) for n in sizes for j in range(0, n, BLOCK)]
        weights = Weights(
            W=np.ones(starts.arm[-1]),
            blocks=np.array(in_blocks, dtype=float),
            total=sizes.astype(float),
        )
        taken = np.zeros(max(L), dtype=np.bool_)
        scratch = Scratch(taken, np.zeros_like(taken), np.zeros(-(-max(L) // BLOCK)))
        self._scratch, self._state = plain(scratch), plain(starts, weights)
        self._uniforms = Uniforms(setting.generators, K if self._best else 2 * K)
        self._A = np.empty((R, K), dtype=np.int64)
        self._chosen = np.empty((R, K), dtype=np.int64)
        self._P = np.empty((R, K))  # probability of each choice

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        u = self._uniforms.at(t)
        recommend_all(
            self._best, self._gamma, u, self._A, self._chosen, self._P, *self._scratch, *self._state
        )
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks on the lists A, the last ones recommended."""
        observe_all(self._gamma, A, clicks, self._chosen, self._P, *self._state)


def auer_gamma(L: Ints, n: int) -> Floats:
    """min(1, sqrt(L ln L / ((e - 1) n)))."""
    return np.minimum(1.0, np.sqrt(L * np.log(L) / ((math.e - 1.0) * n)))
