"""The list with the largest sum of values: the best assignment of items to positions.

Given values M[i, k] of item i at position k, the K x L assignment problem is solved by shortest
augmenting paths, one position after another (Kuhn 1955; Jonker and Volgenant 1987): O(K^2 L); scipy
does the same, but a kernel cannot call it, and needs the prices.
It leaves prices v[i] >= 0 of the items, 0 for those not on the list, under which every position
prefers its own item: M[A_k, k] - v[A_k] >= M[i, k] - v[i] for all i. As long as that holds the list
is the best one, so after a few values have changed, only these are compared: ``rival[k]`` is at
least the largest M[i, k] - v[i] of the other items. The list changes when it is no longer best.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from logeval.policies.shared.memory import floats, ints
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_views

SLACK = 1e-9  # sums closer than this are equal


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
    """The best list and its prices."""

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
    changed = value > present + SLACK
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
            if own < best.rival[k] - SLACK / K:
                return solve_anew(M, best)
    return False
