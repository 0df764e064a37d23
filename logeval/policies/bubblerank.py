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
from typing import Any, ClassVar, NamedTuple

import numpy as np

from logeval.errors import LogevalError
from logeval.policies.setting import Setting
from logeval.policies.shared.kernel_policy import floats, ints
from logeval.policies.shared.options import ORDER
from logeval.policies.shared.places import ByPlaces, Places, copy, read
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_inline, njit_views


class Bubbles(NamedTuple):
    """Base list and statistics of one replica, items numbered as in the first base list."""

    item: Ints = ints("K")  # the first base list
    base: Ints = ints("K")
    shown: Ints = ints("K")
    s: Floats = floats("K", "K")
    m: Floats = floats("K", "K")
    places: Places = Places()


@njit_views
def is_sure(s, m, log_delta):
    """Whether s > 2 sqrt(m log(1 / delta))."""
    return s > 2.0 * math.sqrt(m * log_delta)


@njit_inline
def recommend_one(now, u, b, A):
    """The base list, every other pair of neighbours in random order unless it is sure."""
    (t, log_delta), K = now, A.shape[0]
    copy(b.base, b.shown)
    for k in range(t % 2, K - 1, 2):
        i, j = b.base[k], b.base[k + 1]
        if not is_sure(b.s[i, j], b.m[i, j], log_delta) and u[k] < 0.5:
            b.shown[k], b.shown[k + 1] = j, i
    for k in range(K):
        A[b.places.order[k]] = b.item[b.shown[k]]


@njit_inline
def learn_one(now, b, A, clicks):
    """Learn from the pairs of this round, and let the better ones rise."""
    (t, log_delta), K, c = now, A.shape[0], b.places.c
    read(A, clicks, b.places)
    for k in range(t % 2, K - 1, 2):
        if c[k] != c[k + 1]:
            i, j = b.shown[k], b.shown[k + 1]
            b.s[i, j] += c[k] - c[k + 1]
            b.s[j, i] -= c[k] - c[k + 1]
            b.m[i, j] += 1.0
            b.m[j, i] += 1.0
    for k in range(K - 1):
        i, j = b.base[k], b.base[k + 1]
        if is_sure(b.s[j, i], b.m[j, i], log_delta):
            b.base[k], b.base[k + 1] = j, i


class BubbleRank(ByPlaces):
    """A base list whose neighbours change places when that is surely better."""

    NAME, PAPER = "BubbleRank", "Li et al., UAI 2019"
    KNOWS, READS, COST = f"horizon, base list, {ORDER}", "neighbours of which one was clicked", "K"
    FIGURE = 23
    PARAMETERS: ClassVar = {"items": ("all", "base"), **ByPlaces.PARAMETERS}
    NEEDS: ClassVar = ("base_list",)
    KERNELS = Bubbles(), recommend_one, learn_one

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given, uniforms=setting.K)
        K, base = setting.K, setting.ask("base_list")
        if self.given.items == "all" and max(setting.L) > K:
            raise LogevalError(
                f"policy {setting.policy}: it ranks all items, and a query has {max(setting.L)} "
                f"for {K} positions; BubbleRank(items=base) re-ranks the {K} items of the base "
                "list and never shows the others"
            )
        self.memory.item[:] = base[:, self.memory.places.order]
        self.memory.base[:] = np.arange(K)
        self._log_delta = 4.0 * math.log(setting.horizon)

    def now(self, t: int) -> tuple[int, float]:
        """The step, whose parity decides which pairs are looked at, and log(1 / delta)."""
        return t, self._log_delta
