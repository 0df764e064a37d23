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
from typing import Any, NamedTuple

from logeval.policies.setting import Setting
from logeval.policies.shared.blocks import Blocks, Pairs, comparing, peel, relate, show_blocks
from logeval.policies.shared.kernel_policy import ints
from logeval.policies.shared.options import ORDER
from logeval.policies.shared.places import ByPlaces, Places, read, show
from logeval.running.arrays import Ints
from logeval.running.kernels import njit_inline, njit_views

C = 4.0 * math.sqrt(2.0 / math.pi) / math.erf(math.sqrt(2.0))


class Memory(NamedTuple):
    """Of one replica."""

    pairs: Pairs = Pairs()
    blocks: Blocks = Blocks()
    stale: Ints = ints(1, fill=1)  # whether the blocks must be found anew
    places: Places = Places()


@njit_inline
def recommend_one(now, u, mine, A):
    """The blocks, each in a fresh random order."""
    blocks, places = mine.blocks, mine.places
    if mine.stale[0]:
        peel(blocks)
        mine.stale[0] = 0
    show_blocks(u, blocks.items, blocks.end, places.held)
    show(places.held, places.order, A)


@njit_views
def is_below(S, N, log_cn):
    """Whether S of N differing clicks settles the order."""
    if S <= 0 or float(S) * S < 2.0 * N * log_cn:  # log sqrt(N) >= 0
        return False
    return float(S) * S >= 2.0 * N * (log_cn + 0.5 * math.log(N))


@njit_inline
def settle(i, j, now, mine):
    """Whether item j is below item i."""
    (log_cn,) = now
    if is_below(mine.pairs.S[i, j], mine.pairs.N[i, j], log_cn) and relate(i, j, True, mine.blocks):
        mine.stale[0] = 1


compare = comparing(settle)


@njit_inline
def learn_one(now, mine, A, clicks):
    """Compare the clicks within blocks."""
    read(A, clicks, mine.places)
    compare(now, mine, mine.blocks.items, mine.blocks.end, mine.places.c)


class TopRank(ByPlaces):
    """Random lists within blocks, which part when one item is surely below another."""

    NAME, PAPER = "TopRank", "Lattimore et al., NeurIPS 2018"
    KNOWS = f"horizon, {ORDER}"
    READS = "clicked against not clicked in a block"
    COST = "K L; L^2 when blocks change"
    FIGURE = 18
    KERNELS = Memory(), recommend_one, learn_one

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given, uniforms=setting.K)
        self.rule = (math.log(C * setting.horizon),)
