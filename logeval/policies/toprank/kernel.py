"""TopRank: blocks of items that are split when one item is surely better than another.

S_ij sums C_i - C_j over the rounds in which i and j were in one block, where C is the click on an
item (0 if it was not shown), and N_ij sums |C_i - C_j|. When

    S_ij >= sqrt(2 N_ij log(c n sqrt(N_ij))),    c = 4 sqrt(2 / pi) / erf(sqrt 2)

item j is below item i, for good (delta = 1/n). The first block holds the items that are below no
other, the second those below none but items of the first, and so on. A list shows the blocks one
after another, each in a fresh random order.

Lattimore, Kveton, Li, Szepesvari: TopRank: a practical algorithm for online stochastic ranking
(NeurIPS 2018), Algorithm 1. Only a clicked item against one that was not clicked changes S and N,
and blocks change only with a new relation: a step costs clicks x block. Should relations form a
circle, the items left are one block.
"""

from __future__ import annotations

import math
from typing import ClassVar

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
from logeval.policies.shared.lazy_topk import plain
from logeval.policies.shared.places import Places, copy, places, read, show, shuffle_first
from logeval.policies.shared.positions import ORDER
from logeval.policies.toprank import paper
from logeval.running.arrays import Ints
from logeval.running.kernels import njit_views
from logeval.running.uniforms import Uniforms

C = 4.0 * math.sqrt(2.0 / math.pi) / math.erf(math.sqrt(2.0))


@njit_views
def recommend_one(u, blocks, held):
    """The first K items of the blocks, each block in a fresh random order."""
    K, start, b = held.shape[0], 0, 0
    while start < K:
        end = blocks.end[b]
        shuffle_first(blocks.items[start:end], u[start:K])
        start = end
        b += 1
    copy(blocks.items, held)


@njit_views
def is_below(S, N, log_cn):
    """Whether S of N differing clicks settles the order."""
    if S <= 0 or float(S) * S < 2.0 * N * log_cn:  # log sqrt(N) >= 0
        return False
    return float(S) * S >= 2.0 * N * (log_cn + 0.5 * math.log(N))


@njit_views
def compare(members, held, c, log_cn, pairs, blocks):
    """A block's clicked items against its others; whether an order was found.

    The first members were shown: held and c are their labels and clicks.
    """
    found, shown = False, held.shape[0]
    for k in range(shown):
        if not c[k]:
            continue
        i = held[k]
        for m in range(members.shape[0]):
            if m < shown and c[m]:
                continue
            j = held[m] if m < shown else members[m]
            pairs.S[i, j] += 1
            pairs.S[j, i] -= 1
            pairs.N[i, j] += 1
            pairs.N[j, i] += 1
            if is_below(pairs.S[i, j], pairs.N[i, j], log_cn):
                found |= relate(i, j, True, blocks)
    return found


@njit_views
def update_one(held, c, log_cn, pairs, blocks):
    """Learn from the clicks c on the labels held, block by block."""
    K = held.shape[0]
    found = False
    start, b = 0, 0
    while start < K:
        end = blocks.end[b]
        shown = slice(start, min(end, K))
        found |= compare(blocks.items[start:end], held[shown], c[shown], log_cn, pairs, blocks)
        start = end
        b += 1
    if found:
        peel(blocks)


@njit_views
def recommend_all(u, held, A, places, pairs, blocks):
    """``recommend_one`` for each replica."""
    places, blocks = Places(*places), Blocks(*blocks)
    for r in range(A.shape[0]):
        recommend_one(u[r], blocks_of(r, places.L[r], blocks), held)
        show(held, places.order, A[r])


@njit_views
def update_all(A, clicks, log_cn, held, c, places, pairs, blocks):
    """``update_one`` for each replica."""
    places, pairs, blocks = Places(*places), Pairs(*pairs), Blocks(*blocks)
    for r in range(A.shape[0]):
        read(A[r], clicks[r], places.order, held, c)
        L = places.L[r]
        update_one(held, c, log_cn, pairs_of(r, L, pairs), blocks_of(r, L, blocks))


class TopRank:
    """TopRank; ``order`` lists the positions from the most to the least examined."""

    NAME, PAPER = "TopRank", "Lattimore et al., NeurIPS 2018"
    KNOWS = f"horizon, {ORDER}"
    READS = "clicked against not clicked in a block"
    COST = "K L; L^2 when blocks change"
    REFERENCE, FIGURE = paper.TopRank, 18
    PARAMETERS: ClassVar = {"order": str}

    def __init__(self, setting: Setting, *, order: str = "descending") -> None:
        R, K = setting.R, setting.K
        self._places = places(setting, order)
        self._pairs = no_pairs(R, int(max(setting.L)))
        self._blocks = one_block(R, setting.L)
        self._state = plain(self._places, self._pairs, self._blocks)
        self._log_cn = math.log(C * setting.horizon)
        self._uniforms = Uniforms(setting.generators, K)
        self._held, self._c = np.empty(K, dtype=np.int64), np.empty(K, dtype=np.int64)
        self._A = np.empty((R, K), dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        recommend_all(self._uniforms.at(t), self._held, self._A, *self._state)
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks on the lists A, the last ones recommended."""
        update_all(A, clicks, self._log_cn, self._held, self._c, *self._state)
