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

Equal bounds are ordered by label. The environment gives the items of each replica random labels,
which breaks ties at random.

Python hands the arrays to a kernel as ``plain`` tuples, and the kernel puts the names back on,
``Arms(*arms)``: looking up the type of a named tuple costs numba more than a microsecond a call, a
tenth of a step, and that of a plain one nearly nothing. Views of one replica cost nothing where
references are not counted (``logeval.running.kernels``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from logeval.policies.shared.bounds import budget_at, upper
from logeval.running.arrays import Bools, Floats, Ints
from logeval.running.kernels import ZERO, njit_inline, njit_views

BLOCK = 64  # arms in a block
SLACK = 1e-9  # more than the rounding of bounds and budgets
NO_BAR = -1.0  # the list has room for any arm
MEMO = 1024  # bounds remembered within a step
HELD = np.inf  # the budget of arms on the list, which are always evaluated


class Starts(NamedTuple):
    """Where the arms, and the blocks of arms, of each bandit start; one more for the end."""

    arm: Ints
    block: Ints


class Arms(NamedTuple):
    """What observations change: of one bandit, or of several, one after the other."""

    S: Floats  # sum of the observations of each arm
    T: Floats  # their number
    wake: Floats  # the budget at which it must be looked at again
    block_wake: Floats  # the smallest of a block


class Search(NamedTuple):
    """What else selecting needs, for one bandit or for several."""

    taken: Bools  # arms that are left out
    held: Ints  # the list of the last call
    U: Floats  # its bounds
    level: Floats  # the level at which an arm was parked
    block_level: Floats  # the largest of a block
    memo: Floats  # bounds solved before: rows S, T, b, bound


@njit_inline
def arms_of(i, starts, arms):
    """The arms of bandit i."""
    a, z = starts.arm[i], starts.arm[i + 1]
    x, y = starts.block[i], starts.block[i + 1]
    return Arms(arms.S[a:z], arms.T[a:z], arms.wake[a:z], arms.block_wake[x:y])


@njit_inline
def search_of(i, starts, search):
    """The search of bandit i."""
    a, z = starts.arm[i], starts.arm[i + 1]
    x, y = starts.block[i], starts.block[i + 1]
    return Search(
        search.taken, search.held[i], search.U[i], search.level[a:z], search.block_level[x:y],
        search.memo,
    )  # fmt: skip


@njit_views
def remembered_upper(kind, S, T, b, memo):
    """``bounds.upper``, looked up in ``memo`` where it is there."""
    row = memo[(int(T) * 61 + int(S)) % MEMO]
    if row[0] != S or row[1] != T or row[2] != b:
        row[0], row[1], row[2], row[3] = S, T, b, upper(kind, S, T, b)
    return row[3]


@njit_views
def insert(held, index, size, e, U):
    """Insert arm e with bound U into the sorted list of ``size`` arms; drops the last if full."""
    j = min(size, held.shape[0] - 1)
    while j > 0 and (U > index[j - 1] or (U == index[j - 1] and e < held[j - 1])):
        held[j], index[j] = held[j - 1], index[j - 1]
        j -= 1
    held[j], index[j] = e, U


@njit_inline
def park(kind, e, U, bar, arms, search):
    """Put arm e, with bound U <= bar, to sleep until its bound is halfway to the bar."""
    level = 0.5 * (U + bar)
    wake = 0.0  # a tie: look again at the next step
    if bar - U >= SLACK:
        wake = min(budget_at(kind, arms.S[e], arms.T[e], level), 1e300)
    arms.wake[e], search.level[e] = wake, level
    block = e // BLOCK
    arms.block_wake[block] = min(arms.block_wake[block], wake)
    search.block_level[block] = max(search.block_level[block], level)


@njit_inline
def touch(e, arms):
    """Arm e was observed: its parking is void."""
    if arms.wake[e] != HELD:
        arms.wake[e] = 0.0
        arms.block_wake[e // BLOCK] = 0.0


@njit_inline
def select_lazy(kind, b, arms, search):
    """Leave in ``held`` the arms with the largest bounds, from the largest down.

    On entry ``held`` is the list of the last call. Arms marked in ``taken`` are left out.
    """
    S, T, wake, block_wake = arms
    taken, held, index, level, block_level, memo = search
    m, L = held.shape[0], S.shape[0]
    size = ZERO
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
                park(kind, last, out_U, bar, arms, search)
            else:
                park(kind, e, U, bar, arms, search)


@njit_views
def select_eager(kind, b, arms, search):
    """The same list, by evaluating every arm."""
    held, index = search.held, search.U
    size, m = ZERO, held.shape[0]
    for e in range(arms.S.shape[0]):
        if search.taken[e]:
            continue
        U = upper(kind, arms.S[e], arms.T[e], b)
        if size < m or U > index[m - 1]:
            insert(held, index, size, e, U)
            size = min(size + 1, m)


@njit_inline
def select(lazy, kind, b, arms, search):
    """Leave the list of one bandit in ``search.held``."""
    if lazy:
        select_lazy(kind, b, arms, search)
    else:
        select_eager(kind, b, arms, search)


def plain(*named: NamedTuple) -> Any:
    """Named tuples as plain ones, for kernels."""
    return tuple(tuple(one) for one in named)


def starts_of(sizes: Ints, block: int = BLOCK) -> Starts:
    """The starts of bandits with the given numbers of arms, in blocks of ``block``."""
    sizes = np.asarray(sizes)
    ends = np.cumsum(sizes), np.cumsum(-(-sizes // block))
    return Starts(*(np.concatenate([[0], end]).astype(np.int64) for end in ends))


class Bandits:
    """Several bandits, bandit i with L[i] arms, which look for their m best arms each."""

    def __init__(self, L: Ints, m: int) -> None:
        self.starts = starts_of(L)
        n, n_blocks = self.starts.arm[-1], self.starts.block[-1]
        self.arms = Arms(np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n_blocks))
        self.search = Search(
            taken=np.zeros(max(L), dtype=np.bool_),
            held=np.tile(np.arange(m), (len(L), 1)),
            U=np.zeros((len(L), m)),
            level=np.zeros(n),
            block_level=np.zeros(n_blocks),
            memo=np.full((MEMO, 4), -1.0),
        )
        for a in self.starts.arm[:-1]:
            self.arms.wake[a : a + m], self.search.level[a : a + m] = HELD, -HELD
