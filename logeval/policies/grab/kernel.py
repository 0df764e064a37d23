"""GRAB, S-GRAB and KL-CombUCB1: indices of items at positions, nothing known of either.

rho_ik is the mean click on item i at position k and T_ik how often it was shown there.

- The leader is the best assignment of items to positions by rho, 0 where unseen (the first one
  is random); tau counts its rounds.
- pi sorts the positions by the leader's rho, descending. Neighbours of the leader: the items at
  pi_k and pi_{k+1} exchanged, k < K, and the item at pi_K replaced by any one not shown;
  gamma = L - 1 of them. S-GRAB: any two items exchanged, any item replaced;
  gamma = K (2 L - K - 1) / 2.
- If tau mod gamma = 0 the leader is played, else the list of these with the largest sum of
  KL-UCB(rho_ik, T_ik) at budget log tau + 3 log log tau; the leader wins ties.

Gauthier, Gaudel, Fromont, Lompo: Parametric graph for unimodal ranking bandit (ICML 2021).
KL-CombUCB1 plays the best assignment by KL-UCB(rho_ik, T_ik) at budget log n (Combes, Talebi,
Proutiere, Lelarge: Combinatorial bandits revisited, NeurIPS 2015, as the GRAB paper uses it).

Only K values change in a step, so the leader is checked by prices (``assignment.py``), and a
neighbour differs from it in one or two positions. Of the replacements only the largest index
counts, and an index is solved only if it exceeds the largest one so far.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from logeval.policies.grab import paper
from logeval.policies.grab.assignment import Assignment, assignment_of, no_assignment, reassign
from logeval.policies.setting import Setting
from logeval.policies.shared.bounds import kl, kl_upper
from logeval.policies.shared.cells import ItemPositions, cells_of, count, no_cells
from logeval.policies.shared.lazy_topk import plain
from logeval.policies.shared.leaders import (
    SLACK,
    Leaders,
    lead,
    leader_budget,
    leaders_of,
    no_leaders,
)
from logeval.policies.shared.places import Places, copy, places, read, show, sort_descending
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_views

TIE = 1e-10  # gains closer than this are equal


class Leading(NamedTuple):
    """Scratch, which all replicas share: of the leader at its positions."""

    own: Floats  # (K,) indices
    rho: Floats  # (K,) means
    pi: Ints  # (K,) the positions by rho


def no_leading(K: int) -> Leading:
    """Room for one leader."""
    return Leading(np.empty(K), np.empty(K), np.arange(K))


@njit_views
def index(i, k, cells, b):
    """KL-UCB of item i at position k."""
    T = cells.T[i, k]
    if T == 0 or b == math.inf:
        return 1.0
    return kl_upper(cells.S[i, k] / T, b / T)


@njit_views
def best_replacement(k, at_least, cells, A, b):
    """The item not on the list A with the largest index at position k, if above ``at_least``."""
    best, item = at_least, -1
    for i in range(cells.S.shape[0]):
        T = cells.T[i, k]
        if T > 0 and b < math.inf:
            p = cells.S[i, k] / T
            if p <= best and T * kl(p, best) > b * (1.0 + SLACK):
                continue
        taken = False
        for j in range(A.shape[0]):
            taken |= A[j] == i
        if taken:
            continue
        U = index(i, k, cells, b)
        if U > best:
            best, item = U, i
            if U >= 1.0:
                break
    return item, best


@njit_views
def best_neighbour(every, cells, A, b, leading, held):
    """The list with the largest sum of indices among the leader A and its neighbours."""
    K = A.shape[0]
    own, rho, pi = leading
    for k in range(K):
        own[k], rho[k] = index(A[k], k, cells, b), cells.value[A[k], k]
    if not every:
        sort_descending(rho, K, pi)
    copy(A, held)
    best, first, second, item = 0.0, -1, -1, -1
    for x in range(K):
        for y in range(x + 1, K if every else min(x + 2, K)):
            j, k = pi[x], pi[y]
            gain = index(A[k], j, cells, b) - own[j] + index(A[j], k, cells, b) - own[k]
            if gain > best + TIE:
                best, first, second = gain, j, k
    for x in range(0 if every else K - 1, K):
        k = pi[x]
        i, U = best_replacement(k, own[k] + best + TIE, cells, A, b)
        if i >= 0:
            best, first, second, item = U - own[k], k, -1, i
    if item >= 0:
        held[first] = item
    elif first >= 0:
        held[first], held[second] = A[second], A[first]


@njit_views
def recommend_one(every, cells, best, leaders, leading, held):
    """The leader every gamma rounds, else the best of it and its neighbours."""
    L, K = cells.S.shape
    gamma = K * (2 * L - K - 1) // 2 if every else L - 1
    tau = leaders.tau[leaders.now[0]]
    leaders.tau[leaders.now[0]] += 1
    if gamma == 0 or tau % gamma == 0:
        copy(best.A, held)
    else:
        best_neighbour(every, cells, best.A, leader_budget(tau), leading, held)


@njit_views
def update_one(held, c, cells, best, leaders):
    """Learn from the clicks c on the list held."""
    count(held, c, cells)
    for k in range(held.shape[0]):
        cells.value[held[k], k] = cells.S[held[k], k] / cells.T[held[k], k]
    if reassign(held, cells.value, best):
        lead(best.A, leaders)


@njit_views
def recommend_all(every, leading, held, A, places, cells, best, leaders):
    """``recommend_one`` for each replica."""
    places, cells, leading = Places(*places), ItemPositions(*cells), Leading(*leading)
    best, leaders = Assignment(*best), Leaders(*leaders)
    for r in range(A.shape[0]):
        L = places.L[r]
        mine = cells_of(r, L, cells), assignment_of(r, L, best), leaders_of(r, leaders)
        recommend_one(every, *mine, leading, held)
        show(held, places.order, A[r])


@njit_views
def update_all(A, clicks, held, c, places, cells, best, leaders):
    """``update_one`` for each replica."""
    places, cells = Places(*places), ItemPositions(*cells)
    best, leaders = Assignment(*best), Leaders(*leaders)
    for r in range(A.shape[0]):
        read(A[r], clicks[r], places.order, held, c)
        L = places.L[r]
        mine = cells_of(r, L, cells), assignment_of(r, L, best), leaders_of(r, leaders)
        update_one(held, c, *mine)


class GRAB:
    """GRAB."""

    NAME, PAPER = "GRAB", "Gauthier et al., ICML 2021"
    KNOWS, READS, COST = "nothing", "all clicks", "L + K; K^2 L when the leader changes"
    REFERENCE, FIGURE = paper.GRAB, 19
    EVERY: ClassVar = False  # whether any two items may be exchanged

    def __init__(self, setting: Setting) -> None:
        R, K, L = setting.R, setting.K, int(max(setting.L))
        self._places = places(setting)
        self._cells = no_cells(R, L, K)
        self._best = no_assignment(R, L, K)
        self._best.A[:] = np.arange(K)  # a random list: labels are random
        self._leaders = no_leaders(R)
        for r in range(R):
            lead(self._best.A[r], Leaders(*(one[r] for one in self._leaders)))
        self._leading = plain(no_leading(K))
        self._state = plain(self._places, self._cells, self._best, self._leaders)
        self._held, self._c = np.empty(K, dtype=np.int64), np.empty(K, dtype=np.int64)
        self._A = np.empty((R, K), dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        recommend_all(self.EVERY, *self._leading, self._held, self._A, *self._state)
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks on the lists A."""
        update_all(A, clicks, self._held, self._c, *self._state)


class SGRAB(GRAB):
    """S-GRAB: GRAB with all exchanges and replacements as neighbours."""

    NAME, COST = "S-GRAB", "L K; K^2 L when the leader changes"
    REFERENCE, FIGURE = paper.SGRAB, 28
    EVERY = True


@njit_views
def assign_all(A, clicks, b, held, c, places, cells, best):
    """KL-CombUCB1: new indices of what was shown, and the best assignment by them."""
    places, cells, best = Places(*places), ItemPositions(*cells), Assignment(*best)
    for r in range(A.shape[0]):
        read(A[r], clicks[r], places.order, held, c)
        mine = cells_of(r, places.L[r], cells)
        count(held, c, mine)
        for k in range(held.shape[0]):
            mine.value[held[k], k] = index(held[k], k, mine, b)
        reassign(held, mine.value, assignment_of(r, places.L[r], best))


@njit_views
def show_all(order, best, A):
    """The present list of each replica."""
    for r in range(A.shape[0]):
        show(best[r], order, A[r])


class KLCombUCB1:
    """KL-CombUCB1."""

    NAME, PAPER = "KL-CombUCB1", "Combes et al., NeurIPS 2015"
    KNOWS, READS, COST = "horizon", "all clicks", "K^2 L"
    REFERENCE, FIGURE = paper.KLCombUCB1, 29

    def __init__(self, setting: Setting) -> None:
        R, K, L = setting.R, setting.K, int(max(setting.L))
        self._places = places(setting)
        self._cells = no_cells(R, L, K)
        self._cells.value[:] = 1.0
        self._best = no_assignment(R, L, K)
        self._best.A[:] = np.arange(K)
        self._state = plain(self._places, self._cells, self._best)
        self._budget = math.log(setting.horizon)
        self._held, self._c = np.empty(K, dtype=np.int64), np.empty(K, dtype=np.int64)
        self._A = np.empty((R, K), dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        show_all(self._places.order, self._best.A, self._A)
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks on the lists A."""
        assign_all(A, clicks, self._budget, self._held, self._c, *self._state)
