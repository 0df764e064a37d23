"""The list with the largest sum of values: the best assignment of items to positions.

Given values M[i, k] of item i at position k, the K x L assignment problem is solved by shortest
augmenting paths, one position after another (Kuhn 1955; Jonker and Volgenant 1987): O(K^2 L).
It leaves prices v[i] >= 0 of the items, 0 for those not on the list, under which every position
prefers its own item: M[A_k, k] - v[A_k] >= M[i, k] - v[i] for all i. As long as that holds the list
is the best one, so after a few values have changed, only these are compared: ``rival[k]`` is at
least the largest M[i, k] - v[i] of the other items. The list changes when it is no longer best.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_inline, njit_views

SLACK = 1e-9  # sums closer than this are equal


class Assignment(NamedTuple):
    """The best lists and their prices, of all replicas or of one."""

    A: Ints  # (K,) item of each position
    price: Floats  # (L,)
    rival: Floats  # (K,)
    position: Ints  # (L + 1,) scratch: position of each item, and from here on in the search:
    way: Ints  # (L + 1,)
    slack: Floats  # (L + 1,)
    used: Ints  # (L + 1,)
    y: Floats  # (K + 1,) potentials of the positions
    x: Floats  # (L + 1,) potentials of the items


def no_assignment(R: int, L: int, K: int) -> Assignment:
    """Room for R lists."""
    return Assignment(
        A=np.zeros((R, K), dtype=np.int64),
        price=np.zeros((R, L)),
        rival=np.full((R, K), np.inf),
        position=np.zeros((R, L + 1), dtype=np.int64),
        way=np.zeros((R, L + 1), dtype=np.int64),
        slack=np.zeros((R, L + 1)),
        used=np.zeros((R, L + 1), dtype=np.int64),
        y=np.zeros((R, K + 1)),
        x=np.zeros((R, L + 1)),
    )


@njit_inline
def assignment_of(r, L, best):
    """That of replica r, which has L items."""
    return Assignment(
        best.A[r], best.price[r, :L], best.rival[r], best.position[r, : L + 1],
        best.way[r, : L + 1], best.slack[r, : L + 1], best.used[r, : L + 1], best.y[r],
        best.x[r, : L + 1],
    )  # fmt: skip


@njit_views
def solve(M, best):
    """The potentials and the position (from 1; 0 none) of each item (from 1) of a best list.

    The costs are -M. Item 0 and position 0 stand for the position to be placed next.
    """
    L, K = M.shape
    position, way, slack, used = best.position, best.way, best.slack, best.used
    y, x = best.y, best.x
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
    solve(M, best)
    present, value = 0.0, 0.0
    for k in range(K):
        present += M[best.A[k], k]
    for i in range(1, L + 1):
        if best.position[i]:
            value += M[i - 1, best.position[i] - 1]
    changed = value > present + SLACK
    for i in range(1, L + 1):
        best.price[i - 1] = -best.x[i]
        if changed and best.position[i]:
            best.A[best.position[i] - 1] = i - 1
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
