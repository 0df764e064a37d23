"""The K largest upper confidence bounds of L arms without looking at all.

The lists are those of evaluating every arm. Equal bounds are ordered by label. The environment
gives the items of each replica random labels, which breaks ties at random.
"""

from __future__ import annotations

from typing import NamedTuple

from logeval.policies.shared.bounds import budget_at, upper
from logeval.policies.shared.kernel_policy import floats, ints
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import ZERO, njit_inline, njit_views

BLOCK = 64  # arms in a block
SLACK = 1e-9  # more than the rounding of bounds and budgets
NO_BAR = -1.0  # the list has room for any arm
MEMO = 1024  # bounds remembered within a step
HELD = float("inf")  # the budget of arms on the list, which are always evaluated


def n_blocks(L: int) -> int:
    """How many blocks L arms have."""
    return -(-L // BLOCK)


class Bandit(NamedTuple):
    """Arms that are looked for the K largest upper confidence bounds.

    The bound of an arm that is not observed only grows with the budget, and slowly. When an arm
    is evaluated and found to be below the bar (the smallest bound on the list), it is parked: a
    level halfway between its bound and the bar is noted, and the budget at which the bound will
    reach that level (``bounds.budget_at``, no root finding). Until then, and as long as the bar is
    above the level, the arm cannot be on the list and costs one comparison. Blocks of arms keep
    the earliest budget and the highest level among theirs, so a sleeping block costs one
    comparison as a whole. Arms with equal statistics have equal bounds, which is common early on:
    the bounds solved in a step are remembered, for all replicas.
    """

    S: Floats = floats("L")  # sum of the observations of each arm
    T: Floats = floats("L")  # their number
    wake: Floats = floats("L")  # the budget at which it must be looked at again
    level: Floats = floats("L")  # the level at which it was parked
    block_wake: Floats = floats(n_blocks)  # the smallest of a block
    block_level: Floats = floats(n_blocks)  # the largest of a block
    held: Ints = ints("K", fill=-1)  # the list of the last call; -1: there was none
    U: Floats = floats("K")  # its bounds
    memo: Floats = floats(MEMO, 4, fill=-1.0, shared=True)  # bounds solved before: S, T, b, bound


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
def park(kind, e, U, bar, arms):
    """Put arm e, with bound U <= bar, to sleep until its bound is halfway to the bar."""
    level = 0.5 * (U + bar)
    wake = 0.0  # a tie: look again at the next step
    if bar - U >= SLACK:
        wake = min(budget_at(kind, arms.S[e], arms.T[e], level), 1e300)
    arms.wake[e], arms.level[e] = wake, level
    block = e // BLOCK
    arms.block_wake[block] = min(arms.block_wake[block], wake)
    arms.block_level[block] = max(arms.block_level[block], level)


@njit_inline
def touch(e, arms):
    """Arm e was observed: its parking is void."""
    if arms.wake[e] != HELD:
        arms.wake[e] = 0.0
        arms.block_wake[e // BLOCK] = 0.0


@njit_inline
def select(kind, b, taken, arms):
    """Leave in ``held`` the arms with the largest bounds, from the largest down.

    Arms marked in ``taken`` are left out.
    """
    S, T, wake, level, block_wake, block_level, held, index, memo = arms
    m, L = held.shape[0], S.shape[0]
    size = ZERO
    for i in range(m):  # the last list first: it sets a high bar
        e = held[i]
        if e < 0:
            break
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
                park(kind, last, out_U, bar, arms)
            else:
                park(kind, e, U, bar, arms)
