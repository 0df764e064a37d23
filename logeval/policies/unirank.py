"""UniRank: a leading partition of the items, and its neighbours that may be better.

S_ij and T_ij are as in TopRank: sums of C_i - C_j and of |C_i - C_j| over the rounds in which i and
j were in one block of the partition played; s_ij = S_ij / T_ij.

- The leader: blocks of the items i with s_ij >= 0 against all others left (``blocks.peel``). With
  ``optimism=loglog``, s_ij + sqrt(log log(t+3) / T_ij) >= 0.
- f(j, i) = KL-UCB((1 + s_ji) / 2, T_ij) at budget log tau + 3 log log tau, where tau counts the
  rounds of this leader; 1 for tau < 3. Let d be the last block that starts before place K. The
  neighbours merge blocks b and b + 1, b < d, with score max f(j, i) over i in b, j in b + 1, or add
  an item j from below to block d, with score max f(j, i) over i in d.
- The neighbour with the largest score is played if that is above 1/2, else the leader: blocks one
  after another, each in a fresh random order.

Gauthier, Gaudel, Fromont: UniRank: unimodal bandit algorithms for online ranking (ICML 2022).
The leader changes only when some S_ij crosses 0, which is looked for at each click. A bound is
solved only if it exceeds the best one so far (T d(p, best) < budget, no root finding).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

from logeval.policies.setting import Setting
from logeval.policies.shared.blocks import (
    SLACK,
    Blocks,
    Leaders,
    Pairs,
    comparing,
    lead,
    leader_budget,
    peel,
    relate,
    show_blocks,
)
from logeval.policies.shared.bounds import kl, kl_upper
from logeval.policies.shared.kernel_policy import floats, ints
from logeval.policies.shared.options import ORDER
from logeval.policies.shared.places import ByPlaces, Places, copy, read, show
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_inline, njit_views


class Memory(NamedTuple):
    """Of one replica."""

    pairs: Pairs = Pairs()
    blocks: Blocks = Blocks()
    leaders: Leaders = Leaders()
    items: Ints = ints(lambda L: L + 1)  # the blocks that are played, one after another
    end: Ints = ints("K")  # where each of them ends
    stale: Ints = ints(1, fill=1)  # whether the leader must be found anew
    flip: Floats = floats(1, fill=math.inf)  # the log log t at which a pair stops beating
    places: Places = Places()


@njit_views
def above(best, j, i, pairs, b):
    """f(j, i) at budget b if it is above ``best``, else ``best``."""
    T = pairs.N[j, i]
    if T == 0 or b == math.inf:
        return 1.0
    p = 0.5 + 0.5 * pairs.S[j, i] / T
    if p < best and T * kl(p, best) > b * (1.0 + SLACK):
        return best
    return max(best, kl_upper(p, b / T))


@njit_views
def best_neighbour(b, K, pairs, blocks):
    """The block d, the block to merge with the next one, and the item to add to d; -1 for none."""
    items, end = blocks.items, blocks.end
    best, merge, add = 0.5, -1, -1
    d, start, L = 0, 0, items.shape[0]
    while True:
        last = end[d] >= K or end[d] == L
        for m in range(end[d], L if last else end[d + 1]):
            if best >= 1.0:
                break
            for k in range(start, end[d]):
                score = above(best, items[m], items[k], pairs, b)
                if score > best:
                    best, merge, add = (score, -1, items[m]) if last else (score, d, -1)
        if last:
            return d, merge, add
        start = end[d]
        d += 1


@njit_inline
def recommend_one(now, u, mine, A):
    """The first K items of the best neighbour, or of the leader."""
    blocks, leaders, places = mine.blocks, mine.leaders, mine.places
    if mine.stale[0]:
        peel(blocks)
        lead(blocks.level, leaders)
        mine.stale[0] = 0
    leaders.tau[leaders.now[0]] += 1
    b = leader_budget(leaders.tau[leaders.now[0]])
    d, merge, add = best_neighbour(b, A.shape[0], mine.pairs, blocks)
    size, n = blocks.end[d], 0
    copy(blocks.items, mine.items[:size])
    for j in range(d + 1):
        if j != merge:
            mine.end[n] = blocks.end[j]
            n += 1
    if add >= 0:
        mine.items[size] = add
        mine.end[n - 1] = size + 1
    show_blocks(u, mine.items, mine.end, places.held)
    show(places.held, places.order, A)


@njit_inline
def settle_one(i, j, loglog, mine):
    """Whether i beats j."""
    S, T = float(mine.pairs.S[i, j]), mine.pairs.N[i, j]
    beats = S > 0.0 and S * S > T * loglog
    if beats:
        mine.flip[0] = min(mine.flip[0], S * S / T)
    if relate(i, j, beats, mine.blocks):
        mine.stale[0] = 1


@njit_inline
def settle(i, j, now, mine):
    """Which of i and j beats the other, if any."""
    (loglog,) = now
    settle_one(i, j, loglog, mine)
    settle_one(j, i, loglog, mine)


compare = comparing(settle)


@njit_inline
def learn_one(now, mine, A, clicks):
    """Compare the clicks within the blocks that were played; all pairs when log log t flips one."""
    read(A, clicks, mine.places)
    compare(now, mine, mine.items, mine.end, mine.places.c)
    (loglog,) = now
    if loglog >= mine.flip[0]:
        mine.flip[0] = math.inf
        for i in range(mine.blocks.items.shape[0]):
            for j in range(mine.blocks.items.shape[0]):
                if mine.pairs.S[i, j] > 0:
                    settle_one(i, j, loglog, mine)


class UniRank(ByPlaces):
    """The leading partition of the items, or the best of its neighbours."""

    NAME, PAPER = "UniRank", "Gauthier et al., ICML 2022"
    KNOWS = ORDER
    READS = "clicked against not clicked in a block"
    COST = "K L; L^2 when blocks change"
    FIGURE = 21
    PARAMETERS: ClassVar = {**ByPlaces.PARAMETERS, "optimism": ("none", "loglog")}
    KERNELS = Memory(), recommend_one, learn_one

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given, uniforms=setting.K)

    def now(self, t: int) -> tuple[float]:
        """The log log of the next step, which learning needs."""
        return (math.log(math.log(t + 4)) if self.given.optimism == "loglog" else 0.0,)
