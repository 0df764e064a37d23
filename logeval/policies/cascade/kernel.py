"""CascadeUCB1, CascadeKL-UCB, dcmKL-UCB, First-Click, Last-Click: one bound per item.

All recommend the K items with the largest upper confidence bounds on their attraction and
learn from the positions that the user surely examined. They differ in the bound and in how
they read the clicks (``FEEDBACK``):

- first: up to the first click, which alone counts (cascading-bandits, Algorithm 1;
  First-Click of dcm-bandits, section 5.2)
- all: up to the last click, all clicks count (dcm-bandits, Algorithm 1)
- last: up to the last click, which alone counts (Last-Click of dcm-bandits, section 5.2)

Without a click all K positions were examined.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from logeval.policies.cascade import paper
from logeval.policies.cascade.contextual import ContextualKLUCB
from logeval.policies.setting import Setting
from logeval.policies.shared import bounds
from logeval.policies.shared.lazy_topk import (
    Arms,
    Bandits,
    Search,
    Starts,
    arms_of,
    plain,
    search_of,
    select,
    touch,
)
from logeval.policies.shared.positions import ORDER, positions
from logeval.running.arrays import Ints
from logeval.running.kernels import njit_inline, njit_views

FIRST, ALL, LAST = range(3)  # which clicks count


class Rule(NamedTuple):
    """What makes the policies of this family differ."""

    kind: int  # of the bounds
    feedback: int
    rounds: bool  # whether the first L steps show every item once
    lazy: bool


@njit_inline
def recommend_one(t, b, rule, arms, search, order, A):
    """The K items with the largest bounds at budget b, onto positions in the given order."""
    K, L = A.shape[0], arms.S.shape[0]
    if rule.rounds and t <= L:
        for k in range(K):
            A[k] = (t - 1 + k) % L
        return
    select(rule.lazy, rule.kind, b, arms, search)
    for k in range(K):
        A[order[k]] = search.held[k]


@njit_inline
def observe_one(t, rule, arms, A, clicks):
    """Count the positions that were surely examined, and the clicks there that count."""
    K = A.shape[0]
    if rule.rounds and t <= arms.S.shape[0]:
        K = 1  # only the first position counts
    first, last = K, K
    for k in range(K):
        if clicks[k]:
            first = min(first, k)
            last = k
    end = min(first if rule.feedback == FIRST else last, K - 1)
    for k in range(end + 1):
        e = A[k]
        arms.T[e] += 1.0
        if clicks[k] and (rule.feedback == ALL or k == end):
            arms.S[e] += 1.0
        touch(e, arms)


@njit_views
def recommend_all(t, b, A, order, search, rule, starts, arms):
    """``recommend_one`` for each replica."""
    rule, starts, arms, search = Rule(*rule), Starts(*starts), Arms(*arms), Search(*search)
    for r in range(A.shape[0]):
        mine = arms_of(r, starts, arms), search_of(r, starts, search)
        recommend_one(t, b, rule, *mine, order[r], A[r])


@njit_views
def observe_all(t, A, clicks, rule, starts, arms):
    """``observe_one`` for each replica."""
    rule, starts, arms = Rule(*rule), Starts(*starts), Arms(*arms)
    for r in range(A.shape[0]):
        observe_one(t, rule, arms_of(r, starts, arms), A[r], clicks[r])


class Cascade:
    """Upper confidence bounds on items.

    ``order`` puts the items onto positions by decreasing bound ("descending", the k-th largest
    at position k), by increasing bound ("ascending"), onto given positions ("2>1>3" gives the
    largest to position 2), or by the order that each simulated query has ("known"). ``init``
    is "sample", one free observation of every item, or "rounds", L real rounds in which each item
    is once at the first position.
    """

    KNOWS, COST = ORDER, "L"
    PARAMETERS: ClassVar = {"order": str, "init": ("sample", "rounds")}
    NEEDS: ClassVar = ("free_samples", "position_order")
    KIND: ClassVar[int]
    FEEDBACK: ClassVar[int]

    def __init__(
        self,
        setting: Setting,
        *,
        order: str = "descending",
        init: str = "sample",
        lazy: bool = True,
    ) -> None:
        bandits = Bandits(setting.L, setting.K)
        arms = bandits.arms
        self._order = (  # (R, K) the position of the k-th largest bound
            np.ascontiguousarray(setting.ask("position_order"))
            if order == "known"
            else np.tile(positions(order, setting.K), (setting.R, 1))
        )
        rule = Rule(self.KIND, self.FEEDBACK, init == "rounds", lazy)
        self._search, self._state = plain(bandits.search), plain(rule, bandits.starts, arms)
        self._budget = bounds.kl_budget if self.KIND == bounds.KL else bounds.ucb1_budget
        self._A = np.empty((setting.R, setting.K), dtype=np.int64)
        if init == "sample":
            free_samples = setting.ask("free_samples")
            free = [free_samples(r, 1)[0] for r in range(setting.R)]
            arms.T[:] = 1.0
            arms.S[:] = np.concatenate(free)

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        recommend_all(t, self._budget(t), self._A, self._order, *self._search, *self._state)
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks on the lists A."""
        observe_all(t, A, clicks, *self._state)


class CascadeUCB1(Cascade):
    """cascading-bandits, Algorithm 1 with UCB1 bounds."""

    NAME, PAPER, READS = "CascadeUCB1", "Kveton et al., ICML 2015", "up to the first click"
    REFERENCE, FIGURE = paper.CascadeUCB1, 4
    KIND, FEEDBACK = bounds.UCB1, FIRST


class CascadeKLUCB(Cascade):
    """cascading-bandits, Algorithm 1 with KL-UCB bounds."""

    NAME, PAPER, READS = "CascadeKL-UCB", "Kveton et al., ICML 2015", "up to the first click"
    REFERENCE, FIGURE = paper.CascadeKLUCB, 3
    KIND, FEEDBACK = bounds.KL, FIRST


class DcmKLUCB(Cascade):
    """dcm-bandits, Algorithm 1."""

    NAME, PAPER, READS = "dcmKL-UCB", "Katariya et al., ICML 2016", "up to the last click"
    REFERENCE, FIGURE = paper.DcmKLUCB, 0
    IN_TRACK: ClassVar = {"contextual": ContextualKLUCB}
    KIND, FEEDBACK = bounds.KL, ALL


class FirstClick(Cascade):
    """dcmKL-UCB that is shown the first click only."""

    NAME, PAPER, READS = "First-Click", "Katariya et al., ICML 2016", "up to the first click"
    REFERENCE, FIGURE = paper.FirstClick, 6
    KIND, FEEDBACK = bounds.KL, FIRST


class LastClick(Cascade):
    """dcmKL-UCB that is shown the last click only."""

    NAME, PAPER, READS = "Last-Click", "Katariya et al., ICML 2016", "up to the last click"
    REFERENCE, FIGURE = paper.LastClick, 7
    KIND, FEEDBACK = bounds.KL, LAST
