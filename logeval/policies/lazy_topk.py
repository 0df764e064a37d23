# mypy: allow-untyped-defs
"""Exact lazy selection of the arms with the largest upper confidence bounds.

The bound of an arm that is not observed only grows with the budget, and slowly. When an arm
is evaluated and found to be below the bar (the smallest bound on the list), it is parked: a
level halfway between its bound and the bar is noted, and the budget at which the bound will
reach that level (``bounds.budget_at``, no root finding). Until then, and as long as the bar is
above the level, the arm cannot be on the list and costs one comparison. Blocks of arms keep
the earliest budget and the highest level among theirs, so a sleeping block costs one
comparison as a whole. Arms with equal statistics have equal bounds, which is common early on:
the bounds solved in a step are remembered, for all replicas. The lists are identical to those
of ``select_eager``.

Equal bounds are ordered by label. Policies give the items of each replica random labels, which
breaks ties at random.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from logeval.arrays import Ints
from logeval.policies.bounds import budget_at, upper

BLOCK = 64  # arms in a block
SLACK = 1e-9  # more than the rounding of bounds and budgets
NO_BAR = -1.0  # the list has room for any arm
MEMO = 1024  # bounds remembered within a step
HELD = np.inf  # the budget of arms on the list, which are always evaluated


@njit(cache=True, nogil=True)
def remembered_upper(kind, S, T, b, memo):
    """``bounds.upper``, looked up in ``memo`` (rows S, T, b, bound) where it is there."""
    row = memo[(int(T) * 61 + int(S)) % MEMO]
    if row[0] != S or row[1] != T or row[2] != b:
        row[0], row[1], row[2], row[3] = S, T, b, upper(kind, S, T, b)
    return row[3]


@njit(cache=True, nogil=True)
def insert(held, index, size, e, U):
    """Insert arm e with bound U into the sorted list of ``size`` arms; drops the last if full."""
    j = min(size, held.shape[0] - 1)
    while j > 0 and (U > index[j - 1] or (U == index[j - 1] and e < held[j - 1])):
        held[j], index[j] = held[j - 1], index[j - 1]
        j -= 1
    held[j], index[j] = e, U


@njit(cache=True, nogil=True)
def park(kind, e, U, bar, S, T, wake, level, block_wake, block_level):
    """Put arm e, with bound U <= bar, to sleep until its bound is halfway to the bar."""
    level[e] = 0.5 * (U + bar)
    if bar - U < SLACK:  # a tie: look again at the next step
        wake[e] = 0.0
    else:
        wake[e] = min(budget_at(kind, S[e], T[e], level[e]), 1e300)
    block = e // BLOCK
    block_wake[block] = min(block_wake[block], wake[e])
    block_level[block] = max(block_level[block], level[e])


@njit(cache=True, nogil=True)
def touch(e, wake, block_wake):
    """Arm e was observed: its parking is void."""
    if wake[e] != HELD:
        wake[e] = 0.0
        block_wake[e // BLOCK] = 0.0


@njit(cache=True, nogil=True)
def select_lazy(kind, b, S, T, taken, held, index, wake, level, block_wake, block_level, memo):
    """Leave in ``held`` the arms with the largest bounds, from the largest down.

    On entry ``held`` is the list of the last call. Arms marked in ``taken`` are left out.
    """
    m, L = held.shape[0], S.shape[0]
    size = 0
    for i in range(m):  # the last list first: it sets a high bar
        e = held[i]
        if taken[e]:
            wake[e] = 0.0
            block_wake[e // BLOCK] = 0.0
        else:
            insert(held, index, size, e, remembered_upper(kind, S[e], T[e], b, memo))
            size += 1
    bar = index[m - 1] if size == m else NO_BAR
    for block in range(block_wake.shape[0]):
        if block_wake[block] > b and block_level[block] < bar - SLACK:
            continue
        block_wake[block], block_level[block] = HELD, -HELD
        for e in range(block * BLOCK, min((block + 1) * BLOCK, L)):
            if wake[e] > b and level[e] < bar - SLACK:
                block_wake[block] = min(block_wake[block], wake[e])
                block_level[block] = max(block_level[block], level[e])
                continue
            last = held[m - 1]
            if taken[e] or (size == m and e > last and S[e] == S[last] and T[e] == T[last]):
                block_wake[block] = 0.0  # taken, or tied with the last and behind it
                continue
            U = remembered_upper(kind, S[e], T[e], b, memo)
            if size < m:
                insert(held, index, size, e, U)
                wake[e], level[e] = HELD, -HELD
                size += 1
                bar = index[m - 1] if size == m else NO_BAR
            elif U > bar or (U == bar and e < last):
                out_U = index[m - 1]
                insert(held, index, m, e, U)
                wake[e], level[e] = HELD, -HELD
                bar = index[m - 1]
                park(kind, last, out_U, bar, S, T, wake, level, block_wake, block_level)
            else:
                park(kind, e, U, bar, S, T, wake, level, block_wake, block_level)


@njit(cache=True, nogil=True)
def select_eager(kind, b, S, T, taken, held, index):
    """The same list, by evaluating every arm."""
    size, m = 0, held.shape[0]
    for e in range(S.shape[0]):
        if taken[e]:
            continue
        U = upper(kind, S[e], T[e], b)
        if size < m or U > index[m - 1]:
            insert(held, index, size, e, U)
            size = min(size + 1, m)


@njit(cache=True, nogil=True)
def select(
    lazy, kind, b, i, start, S, T, taken, held, index, block_start, wake, level, block_wake,
    block_level, memo,
):  # fmt: skip
    """Select in bandit i of an ``Arms``."""
    a, z = start[i], start[i + 1]
    if lazy:
        x, y = block_start[i], block_start[i + 1]
        select_lazy(
            kind, b, S[a:z], T[a:z], taken, held[i], index[i], wake[a:z], level[a:z],
            block_wake[x:y], block_level[x:y], memo,
        )  # fmt: skip
    else:
        select_eager(kind, b, S[a:z], T[a:z], taken, held[i], index[i])


class Arms:
    """The statistics of several bandits, bandit i with L[i] arms, and their lists of m arms."""

    def __init__(self, L: Ints, m: int) -> None:
        self.start = np.concatenate([[0], np.cumsum(L)]).astype(np.int64)
        self.S = np.zeros(self.start[-1])  # sum of observations
        self.T = np.zeros(self.start[-1])  # their number
        self.held = np.tile(np.arange(m), (len(L), 1))
        self.index = np.zeros((len(L), m))
        blocks = -(-np.asarray(L) // BLOCK)
        self.block_start = np.concatenate([[0], np.cumsum(blocks)]).astype(np.int64)
        self.wake = np.zeros(self.start[-1])
        self.level = np.zeros(self.start[-1])
        self.block_wake = np.zeros(self.block_start[-1])
        self.block_level = np.zeros(self.block_start[-1])
        for a in self.start[:-1]:
            self.wake[a : a + m], self.level[a : a + m] = HELD, -HELD
        self.taken = np.zeros(max(L), dtype=np.bool_)
        self.selection = (
            self.start, self.S, self.T, self.taken, self.held, self.index, self.block_start,
            self.wake, self.level, self.block_wake, self.block_level, np.full((MEMO, 4), -1.0),
        )  # fmt: skip
