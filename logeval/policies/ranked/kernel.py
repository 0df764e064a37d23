"""RankedUCB1 and RankedKL-UCB: one bandit per position, whose reward is the click there.

Radlinski, Kleinberg, Joachims: Learning diverse rankings with multi-armed bandits (ICML 2008).
From the first position down each bandit chooses an item. When that item stands higher up
already (a collision), the position shows

- collision=best: the best item of its own bandit among those still free, and learns from it.
  This reproduces the factor of three to dcmKL-UCB of dcm-bandits, section 5.2.
- collision=random: a random free item, and the bandit's choice earns nothing (Radlinski's rule).
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from logeval.policies.ranked import paper
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
from logeval.running.arrays import Ints
from logeval.running.kernels import njit_inline, njit_views
from logeval.running.uniforms import Uniforms


@njit_views
def random_free(u, taken, L, n_taken):
    """The free item at the uniform u's place among the L - n_taken free ones."""
    skip = min(int(u * (L - n_taken)), L - n_taken - 1)
    for e in range(L):
        if not taken[e]:
            if skip == 0:
                return e
            skip -= 1
    return -1


class Rule(NamedTuple):
    """What makes the policies of this family differ."""

    kind: int  # of the bounds
    best: bool  # on a collision the best free item, not a random one
    rounds: bool  # whether the first L steps show every item once at every position
    lazy: bool


@njit_inline
def recommend_one(t, b, u, r, rule, starts, arms, search, nothing, chosen, A):
    """From the first position down, each bandit's choice, or a free item instead."""
    K, taken = A.shape[0], search.taken
    L = starts.arm[r * K + 1] - starts.arm[r * K]
    for k in range(K):
        i = r * K + k
        if rule.rounds and t <= L:
            e = chosen[k] = (t - 1 + k) % L
        else:
            mine = search_of(i, starts, search)
            if rule.best:  # among the free items
                select(rule.lazy, rule.kind, b, arms_of(i, starts, arms), mine)
            else:
                of_all = with_taken(nothing, mine)
                select(rule.lazy, rule.kind, b, arms_of(i, starts, arms), of_all)
            e = chosen[k] = mine.held[0]
            if taken[e]:
                e = random_free(u[k], taken, L, k)
        taken[e] = True
        A[k] = e
    taken[:L] = False


@njit_inline
def with_taken(taken, search):
    """The same search among the arms that are not in ``taken``."""
    return Search(
        taken, search.held, search.U, search.level, search.block_level, search.memo
    )  # fmt: skip


@njit_inline
def observe_one(r, starts, arms, chosen, A, clicks):
    """Each bandit's choice earns the click on it, and nothing if it was not shown."""
    K = A.shape[0]
    for k in range(K):
        mine, e = arms_of(r * K + k, starts, arms), chosen[k]
        mine.T[e] += 1.0
        if clicks[k] and A[k] == e:
            mine.S[e] += 1.0
        touch(e, mine)


@njit_views
def recommend_all(t, b, u, A, chosen, nothing, search, rule, starts, arms):
    """``recommend_one`` for each replica."""
    rule, starts, arms, search = Rule(*rule), Starts(*starts), Arms(*arms), Search(*search)
    for r in range(A.shape[0]):
        recommend_one(t, b, u[r], r, rule, starts, arms, search, nothing, chosen[r], A[r])


@njit_views
def observe_all(A, chosen, clicks, starts, arms):
    """``observe_one`` for each replica."""
    starts, arms = Starts(*starts), Arms(*arms)
    for r in range(A.shape[0]):
        observe_one(r, starts, arms, chosen[r], A[r], clicks[r])


class Ranked:
    """One bandit with upper confidence bounds per position.

    ``init`` is "sample", one free observation of every item for every position, or "rounds",
    L real rounds in which every item is once at every position.
    """

    PAPER = "Radlinski et al., ICML 2008"
    KNOWS, READS, COST = "nothing", "all clicks", "L K"
    PARAMETERS: ClassVar = {"collision": ("best", "random"), "init": ("sample", "rounds")}
    NEEDS: ClassVar = ("free_samples",)
    KIND: ClassVar[int]

    def __init__(
        self, setting: Setting, *, collision: str = "best", init: str = "sample", lazy: bool = True
    ) -> None:
        R, K = setting.R, setting.K
        bandits = Bandits(np.repeat(setting.L, K), 1)
        self._rule = plain(Rule(self.KIND, collision == "best", init == "rounds", lazy))
        self._search = plain(bandits.search)
        self._state = plain(bandits.starts, bandits.arms)
        self._uniforms = Uniforms(setting.generators, K) if collision == "random" else None
        self._no_uniforms = np.empty((R, 0))
        self._budget = bounds.kl_budget if self.KIND == bounds.KL else bounds.ucb1_budget
        self._nothing = np.zeros_like(bandits.search.taken)
        self._A = np.empty((R, K), dtype=np.int64)
        self._chosen = np.empty((R, K), dtype=np.int64)  # by the bandit of each position
        if init == "sample":
            free_samples = setting.ask("free_samples")
            bandits.arms.T[:] = 1.0
            bandits.arms.S[:] = np.concatenate([free_samples(r, K).ravel() for r in range(R)])

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        u = self._uniforms.at(t) if self._uniforms is not None else self._no_uniforms
        recommend_all(
            t, self._budget(t), u, self._A, self._chosen, self._nothing, *self._search, *self._rule,
            *self._state,
        )  # fmt: skip
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks on the lists A, the last ones recommended."""
        observe_all(A, self._chosen, clicks, *self._state)


class RankedUCB1(Ranked):
    """Ranked bandits with UCB1."""

    NAME, REFERENCE, FIGURE = "RankedUCB1", paper.RankedUCB1, 5
    KIND = bounds.UCB1


class RankedKLUCB(Ranked):
    """Ranked bandits with KL-UCB."""

    NAME, REFERENCE, FIGURE = "RankedKL-UCB", paper.RankedKLUCB, 1
    KIND = bounds.KL
