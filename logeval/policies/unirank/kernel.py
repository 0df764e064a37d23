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
from typing import ClassVar, NamedTuple

import numpy as np

from logeval.policies.setting import Setting
from logeval.policies.shared.blocks import (
    Blocks,
    Pairs,
    blocks_of,
    no_pairs,
    one_block,
    pairs_of,
    peel,
    relate,
)
from logeval.policies.shared.bounds import kl, kl_upper
from logeval.policies.shared.lazy_topk import plain
from logeval.policies.shared.leaders import (
    SLACK,
    Leaders,
    lead,
    leader_budget,
    leaders_of,
    no_leaders,
)
from logeval.policies.shared.places import Places, copy, places, read, show, shuffle_first
from logeval.policies.shared.positions import ORDER
from logeval.policies.unirank import paper
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_inline, njit_views
from logeval.running.uniforms import Uniforms


class Round(NamedTuple):
    """What is played, of all replicas or of one."""

    items: Ints  # (L,) displayed blocks, one after another
    end: Ints  # (K,) where each of them ends
    stale: Ints  # (1,) whether the leader must be found anew
    flip: Floats  # (1,) the log log t at which a pair stops beating (optimism=loglog)


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
    best, merge, add = 0.5, -1, -1
    d, start = 0, 0
    while blocks.end[d] < K and blocks.end[d] < blocks.items.shape[0]:
        end, stop = blocks.end[d], blocks.end[d + 1]
        for m in range(end, stop):
            for k in range(start, end):
                score = above(best, blocks.items[m], blocks.items[k], pairs, b)
                if score > best:
                    best, merge = score, d
        start = end
        d += 1
    for m in range(blocks.end[d], blocks.items.shape[0]):
        if best >= 1.0:
            break
        for k in range(start, blocks.end[d]):
            score = above(best, blocks.items[m], blocks.items[k], pairs, b)
            if score > best:
                best, merge, add = score, -1, blocks.items[m]
    return d, merge, add


@njit_views
def find_leader(blocks, leaders):
    """The leader of the present estimates."""
    peel(blocks)
    lead(blocks.level, leaders)


@njit_views
def recommend_one(u, pairs, blocks, leaders, now, held):
    """The first K items of the best neighbour, or of the leader."""
    K = held.shape[0]
    if now.stale[0]:
        find_leader(blocks, leaders)
        now.stale[0] = 0
    leaders.tau[leaders.now[0]] += 1
    b = leader_budget(leaders.tau[leaders.now[0]])
    d, merge, add = best_neighbour(b, K, pairs, blocks)
    size, n = blocks.end[d], 0
    copy(blocks.items, now.items[:size])
    for j in range(d + 1):
        if j != merge:
            now.end[n] = blocks.end[j]
            n += 1
    if add >= 0:
        now.items[size] = add
        now.end[n - 1] = size + 1
    start, j = 0, 0
    while start < K:
        end = now.end[j]
        shuffle_first(now.items[start:end], u[start:K])
        start = end
        j += 1
    copy(now.items, held)


@njit_views
def settle(i, j, loglog, pairs, blocks, now):
    """Whether i beats j, after a change of S_ij."""
    S, T = float(pairs.S[i, j]), pairs.N[i, j]
    beats = S > 0.0 and S * S > T * loglog
    if beats:
        now.flip[0] = min(now.flip[0], S * S / T)
    if relate(i, j, beats, blocks):
        now.stale[0] = 1


@njit_views
def settle_all(loglog, pairs, blocks, now):
    """``settle`` for all pairs: log log t has reached a pair."""
    now.flip[0] = math.inf
    for i in range(blocks.items.shape[0]):
        for j in range(blocks.items.shape[0]):
            if pairs.S[i, j] > 0:
                settle(i, j, loglog, pairs, blocks, now)


@njit_views
def update_one(held, c, loglog, pairs, blocks, now):
    """Learn from the clicks c on the labels held, block by block of what was played."""
    K = held.shape[0]
    start, b = 0, 0
    while start < K:
        end = now.end[b]
        for k in range(start, min(end, K)):
            if not c[k]:
                continue
            i = held[k]
            for m in range(start, end):
                if m < K and c[m]:
                    continue
                j = now.items[m]
                pairs.S[i, j] += 1
                pairs.S[j, i] -= 1
                pairs.N[i, j] += 1
                pairs.N[j, i] += 1
                settle(i, j, loglog, pairs, blocks, now)
                settle(j, i, loglog, pairs, blocks, now)
        start = end
        b += 1
    if loglog >= now.flip[0]:
        settle_all(loglog, pairs, blocks, now)


@njit_inline
def round_of(r, now):
    """What replica r plays."""
    return Round(now.items[r], now.end[r], now.stale[r], now.flip[r])


@njit_views
def recommend_all(u, leaders, held, A, places, pairs, blocks, now):
    """``recommend_one`` for each replica."""
    places, pairs, blocks = Places(*places), Pairs(*pairs), Blocks(*blocks)
    leaders, now = Leaders(*leaders), Round(*now)
    for r in range(A.shape[0]):
        L = places.L[r]
        mine = pairs_of(r, L, pairs), blocks_of(r, L, blocks), leaders_of(r, leaders)
        recommend_one(u[r], *mine, round_of(r, now), held)
        show(held, places.order, A[r])


@njit_views
def update_all(A, clicks, loglog, held, c, places, pairs, blocks, now):
    """``update_one`` for each replica."""
    places, pairs, blocks, now = Places(*places), Pairs(*pairs), Blocks(*blocks), Round(*now)
    for r in range(A.shape[0]):
        read(A[r], clicks[r], places.order, held, c)
        L = places.L[r]
        mine = pairs_of(r, L, pairs), blocks_of(r, L, blocks), round_of(r, now)
        update_one(held, c, loglog, *mine)


class UniRank:
    """UniRank; ``order`` lists the positions from the most to the least examined."""

    NAME, PAPER = "UniRank", "Gauthier et al., ICML 2022"
    KNOWS = ORDER
    READS = "clicked against not clicked in a block"
    COST = "K L; L^2 when blocks change"
    REFERENCE, FIGURE = paper.UniRank, 21
    PARAMETERS: ClassVar = {"order": str, "optimism": ("none", "loglog")}

    def __init__(
        self, setting: Setting, *, order: str = "descending", optimism: str = "none"
    ) -> None:
        R, K, L = setting.R, setting.K, int(max(setting.L))
        self._places = places(setting, order)
        self._loglog = optimism == "loglog"
        self._pairs = no_pairs(R, L)
        self._blocks = one_block(R, setting.L)
        self._leaders = no_leaders(R)
        self._now = Round(
            items=np.zeros((R, L + 1), dtype=np.int64),
            end=np.zeros((R, K), dtype=np.int64),
            stale=np.ones((R, 1), dtype=np.int64),
            flip=np.full((R, 1), np.inf),
        )
        self._state = plain(self._places, self._pairs, self._blocks, self._now)
        self._led = plain(self._leaders)
        self._uniforms = Uniforms(setting.generators, K)
        self._held, self._c = np.empty(K, dtype=np.int64), np.empty(K, dtype=np.int64)
        self._A = np.empty((R, K), dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        recommend_all(self._uniforms.at(t), *self._led, self._held, self._A, *self._state)
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks on the lists A, the last ones recommended."""
        loglog = math.log(math.log(t + 4)) if self._loglog else 0.0  # that of the next step
        update_all(A, clicks, loglog, self._held, self._c, *self._state)
