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

Only K values change in a step, so the leader is checked by prices (``Assignment``), and a
neighbour differs from it in one or two positions. Of the replacements only the largest index
counts, and an index is solved only if it exceeds the largest one so far.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from logeval.policies.setting import Setting
from logeval.policies.shared.blocks import SLACK, ItemPositions, Leaders, count, lead, leader_budget
from logeval.policies.shared.bounds import kl, kl_upper
from logeval.policies.shared.kernel_policy import KernelPolicy, floats, ints
from logeval.policies.shared.places import copy, sort_by
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_inline, njit_views

EQUAL = 1e-9  # sums closer than this are equal


def with_sentinel(n: int) -> int:
    """Numbers from 1 to n, and 0 for the position to be placed next."""
    return n + 1


class Search(NamedTuple):
    """Scratch of ``solve``: items and positions are counted from 1."""

    position: Ints = ints(with_sentinel, shared=True)  # of each item; 0: none
    way: Ints = ints(with_sentinel, shared=True)
    slack: Floats = floats(with_sentinel, shared=True)
    used: Ints = ints(with_sentinel, shared=True)
    y: Floats = floats(with_sentinel, shared=True)  # potentials of the positions
    x: Floats = floats(with_sentinel, shared=True)  # potentials of the items


class Assignment(NamedTuple):
    """The list with the largest sum of values M[i, k] of item i at position k, and its prices.

    The K x L assignment problem is solved by shortest augmenting paths, one position after another
    (Kuhn 1955; Jonker and Volgenant 1987): O(K^2 L); scipy does the same, but a kernel cannot call
    it, and needs the prices. It leaves prices v[i] >= 0 of the items, 0 for those not on the list,
    under which every position prefers its own item: M[A_k, k] - v[A_k] >= M[i, k] - v[i] for all i.
    As long as that holds the list is the best one, so after a few values have changed, only these
    are compared: ``rival[k]`` is at least the largest M[i, k] - v[i] of the other items. The list
    changes when it is no longer best.
    """

    A: Ints = ints("K")  # item of each position
    price: Floats = floats("L")
    rival: Floats = floats("K", fill=np.inf)
    search: Search = Search()


@njit_views
def solve(M, search):
    """The potentials and the position of each item of a best list; the costs are -M."""
    L, K = M.shape
    position, way, slack, used, y, x = search
    y[:], x[:], position[:] = 0.0, 0.0, 0
    for k in range(1, K + 1):
        position[0] = k
        item = 0
        slack[:], used[:] = np.inf, 0
        while position[item] != 0:
            used[item] = 1
            p, step, nearest = position[item], np.inf, 0
            for i in range(1, L + 1):
                if not used[i]:
                    reduced = -M[i - 1, p - 1] - y[p] - x[i]
                    if reduced < slack[i]:
                        slack[i], way[i] = reduced, item
                    if slack[i] < step:
                        step, nearest = slack[i], i
            for i in range(L + 1):
                if used[i]:
                    y[position[i]] += step
                    x[i] -= step
                else:
                    slack[i] -= step
            item = nearest
        while item:
            position[item] = position[way[item]]
            item = way[item]


@njit_views
def set_rival(k, M, best):
    """The largest M[i, k] - v[i] of the items not at position k."""
    rival = -np.inf
    for i in range(M.shape[0]):
        if i != best.A[k]:
            rival = max(rival, M[i, k] - best.price[i])
    best.rival[k] = rival


@njit_views
def solve_anew(M, best):
    """New prices, and a new list if it is better; whether it is."""
    L, K = M.shape
    position = best.search.position
    solve(M, best.search)
    present, value = 0.0, 0.0
    for k in range(K):
        present += M[best.A[k], k]
    for i in range(1, L + 1):
        if position[i]:
            value += M[i - 1, position[i] - 1]
    changed = value > present + EQUAL
    for i in range(1, L + 1):
        best.price[i - 1] = -best.search.x[i]
        if changed and position[i]:
            best.A[position[i] - 1] = i - 1
    for k in range(K):
        set_rival(k, M, best)
    return changed


@njit_views
def reassign(shown, M, best):
    """After the values of the items shown (of each position) have changed; whether the list has."""
    K = best.A.shape[0]
    for k in range(K):
        i = shown[k]
        if i != best.A[k]:
            best.rival[k] = max(best.rival[k], M[i, k] - best.price[i])
    for k in range(K):
        own = M[best.A[k], k] - best.price[best.A[k]]
        if own < best.rival[k]:
            set_rival(k, M, best)
            if own < best.rival[k] - EQUAL / K:
                return solve_anew(M, best)
    return False


TIE = 1e-10  # gains closer than this are equal


class Memory(NamedTuple):
    """Of one replica."""

    cells: ItemPositions = ItemPositions()
    best: Assignment = Assignment()
    leaders: Leaders = Leaders()
    own: Floats = floats("K", shared=True)  # indices of the leader at its positions
    rho: Floats = floats("K", shared=True)  # its means there
    pi: Ints = ints("K", shared=True)  # the positions by rho


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


@njit_inline
def best_neighbour(every, b, mine, held):
    """The list with the largest sum of indices among the leader and its neighbours."""
    cells, A, own, rho, pi = mine.cells, mine.best.A, mine.own, mine.rho, mine.pi
    K = A.shape[0]
    for k in range(K):
        own[k], rho[k] = index(A[k], k, cells, b), cells.value[A[k], k]
        pi[k] = k
    if not every:
        sort_by(rho, pi)
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


@njit_inline
def recommend_one(now, u, mine, A):
    """The leader every gamma rounds, else the best of it and its neighbours."""
    (every,), leaders, (L, K) = now, mine.leaders, mine.cells.S.shape
    if leaders.key[leaders.now[0]] == 0:  # the first round
        lead(mine.best.A, leaders)
    gamma = K * (2 * L - K - 1) // 2 if every else L - 1
    tau = leaders.tau[leaders.now[0]]
    leaders.tau[leaders.now[0]] += 1
    if gamma == 0 or tau % gamma == 0:
        copy(mine.best.A, A)
    else:
        best_neighbour(every, leader_budget(tau), mine, A)


@njit_inline
def learn_one(now, mine, A, clicks):
    """Count the clicks, and see who leads."""
    cells = mine.cells
    count(A, clicks, cells)
    for k in range(A.shape[0]):
        cells.value[A[k], k] = cells.S[A[k], k] / cells.T[A[k], k]
    if reassign(A, cells.value, mine.best):
        lead(mine.best.A, mine.leaders)


class GRAB(KernelPolicy):
    """The list that leads, or the best of its neighbours in a chain."""

    NAME, PAPER = "GRAB", "Gauthier et al., ICML 2021"
    KNOWS, READS, COST = "nothing", "all clicks", "L + K; K^2 L when the leader changes"
    FIGURE = 19
    EVERY: ClassVar = False  # whether any two items may be exchanged
    KERNELS = Memory(), recommend_one, learn_one

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given)
        self.memory.best.A[:] = np.arange(setting.K)  # a random list: labels are random
        self.rule = (self.EVERY,)


class SGRAB(GRAB):
    """GRAB with all exchanges and replacements as neighbours."""

    NAME, COST = "S-GRAB", "L K; K^2 L when the leader changes"
    FIGURE = 28
    EVERY = True


class Assigned(NamedTuple):
    """What KL-CombUCB1 remembers of one replica."""

    cells: ItemPositions = ItemPositions()
    best: Assignment = Assignment()


@njit_inline
def show_best(now, u, mine, A):
    """The best assignment."""
    copy(mine.best.A, A)


@njit_inline
def assign_one(now, mine, A, clicks):
    """New indices of what was shown, and the best assignment by them."""
    (b,), cells = now, mine.cells
    count(A, clicks, cells)
    for k in range(A.shape[0]):
        cells.value[A[k], k] = index(A[k], k, cells, b)
    reassign(A, cells.value, mine.best)


class KLCombUCB1(KernelPolicy):
    """The best assignment of items to positions by KL-UCB bounds."""

    NAME, PAPER = "KL-CombUCB1", "Combes et al., NeurIPS 2015"
    KNOWS, READS, COST = "horizon", "all clicks", "K^2 L"
    FIGURE = 29
    KERNELS = Assigned(), show_best, assign_one

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given)
        self.memory.cells.value[:] = 1.0
        self.memory.best.A[:] = np.arange(setting.K)
        self.rule = (math.log(setting.horizon),)
