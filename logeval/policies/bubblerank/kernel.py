"""BubbleRank: neighbours of a base list change places when that is surely better.

s_ij sums c(i) - c(j) and m_ij counts the rounds in which i and j stood next to each other, might
have been exchanged, and just one was clicked. In round t the neighbours at places (1+h, 2+h),
(3+h, 4+h), ..., h = t mod 2, i above j, are exchanged in the list shown with probability 1/2 if

    s_ij <= 2 sqrt(m_ij log(1 / delta)),    delta = n^-4.

Then, from top to bottom of the base list, neighbours are exchanged for good where
s_ji > 2 sqrt(m_ji log(1 / delta)), j being the lower one. The list shown has never more than K / 2
inversions more than the base list.

Li, Kveton, Lattimore, Markov, de Rijke, Szepesvari, Zoghi: BubbleRank: safe online learning to
re-rank via implicit click feedback (UAI 2019), Algorithm 1, which ranks all items: L = K. Where
there are more, ``items=base`` re-ranks the K items of the base list and never shows the others.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from logeval.errors import LogevalError
from logeval.policies.bubblerank import paper
from logeval.policies.setting import Setting
from logeval.policies.shared.lazy_topk import plain
from logeval.policies.shared.places import copy
from logeval.policies.shared.positions import ORDER, positions
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_views
from logeval.running.uniforms import Uniforms


class Bubbles(NamedTuple):
    """Base list and statistics, items numbered as in the first base list; of all or one."""

    base: Ints  # (K,)
    s: Floats  # (K, K)
    m: Floats  # (K, K)


@njit_views
def is_sure(s, m, log_delta):
    """Whether s > 2 sqrt(m log(1 / delta))."""
    return s > 2.0 * math.sqrt(m * log_delta)


@njit_views
def recommend_one(t, u, log_delta, b, held):
    """The base list, every other pair of neighbours in random order unless it is sure."""
    copy(b.base, held)
    for k in range(t % 2, held.shape[0] - 1, 2):
        i, j = b.base[k], b.base[k + 1]
        if not is_sure(b.s[i, j], b.m[i, j], log_delta) and u[k] < 0.5:
            held[k], held[k + 1] = j, i


@njit_views
def update_one(t, log_delta, b, held, c):
    """Learn from the pairs of this round, and let the better ones rise."""
    K = held.shape[0]
    for k in range(t % 2, K - 1, 2):
        if c[k] != c[k + 1]:
            i, j = held[k], held[k + 1]
            b.s[i, j] += c[k] - c[k + 1]
            b.s[j, i] -= c[k] - c[k + 1]
            b.m[i, j] += 1.0
            b.m[j, i] += 1.0
    for k in range(K - 1):
        i, j = b.base[k], b.base[k + 1]
        if is_sure(b.s[j, i], b.m[j, i], log_delta):
            b.base[k], b.base[k + 1] = j, i


@njit_views
def recommend_all(t, u, log_delta, item, order, held, A, b):
    """``recommend_one`` for each replica."""
    b = Bubbles(*b)
    for r in range(A.shape[0]):
        recommend_one(t, u[r], log_delta, Bubbles(b.base[r], b.s[r], b.m[r]), held[r])
        for k in range(A.shape[1]):
            A[r, order[k]] = item[r, held[r, k]]


@njit_views
def update_all(t, clicks, log_delta, order, held, c, b):
    """``update_one`` for each replica."""
    b = Bubbles(*b)
    for r in range(clicks.shape[0]):
        for k in range(clicks.shape[1]):
            c[k] = clicks[r, order[k]]
        update_one(t, log_delta, Bubbles(b.base[r], b.s[r], b.m[r]), held[r], c)


class BubbleRank:
    """BubbleRank; ``order`` lists the positions from the most to the least examined."""

    NAME, PAPER = "BubbleRank", "Li et al., UAI 2019"
    KNOWS, READS, COST = f"horizon, base list, {ORDER}", "neighbours of which one was clicked", "K"
    REFERENCE, FIGURE = paper.BubbleRank, 23
    PARAMETERS: ClassVar = {"items": ("all", "base"), "order": str}
    NEEDS: ClassVar = ("base_list",)

    def __init__(self, setting: Setting, *, items: str = "all", order: str = "descending") -> None:
        R, K, base = setting.R, setting.K, setting.ask("base_list")
        if items == "all" and max(setting.L) > K:
            raise LogevalError(
                f"policy {setting.policy}: it ranks all items, and a query has {max(setting.L)} "
                f"for {K} positions; BubbleRank(items=base) re-ranks the {K} items of the base "
                "list and never shows the others"
            )
        self._order = positions(order, K)
        self._item = np.ascontiguousarray(base[:, self._order])
        self._bubbles = Bubbles(
            np.tile(np.arange(K), (R, 1)), np.zeros((R, K, K)), np.zeros((R, K, K))
        )
        self._state = plain(self._bubbles)
        self._log_delta = 4.0 * math.log(setting.horizon)
        self._uniforms = Uniforms(setting.generators, K)
        self._held = np.empty((R, K), dtype=np.int64)
        self._c = np.empty(K, dtype=np.int64)
        self._A = np.empty((R, K), dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        recommend_all(
            t, self._uniforms.at(t), self._log_delta, self._item, self._order, self._held,
            self._A, *self._state,
        )  # fmt: skip
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks on the lists A, the last ones recommended."""
        update_all(t, clicks, self._log_delta, self._order, self._held, self._c, *self._state)
