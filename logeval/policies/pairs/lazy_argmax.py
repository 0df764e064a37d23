"""Exact lazy selection of the one arm with the largest upper confidence bound, of very many.

``shared.lazy_topk`` is made for lists, whose last bound is a bar that most arms stay below. With
one place and thousands of pairs, a run explores for most of its time, all bounds are nearly equal,
and sleeping arms wake at once. Here every arm has a key, its bound at a budget a little ahead.
Bounds grow with the budget, so until the budget gets there the key is at least the bound, and only
arms whose key reaches the largest bound found so far are solved. How far ahead is set by what it
costs: about as many bounds are solved for new keys as for selecting. Arms with equal statistics,
the bulk early on, tie; a block of them costs one comparison. The arms are those of evaluating
every bound at every step; equal bounds go to the smaller label.
"""

from __future__ import annotations

from typing import NamedTuple

from logeval.policies.shared.bounds import upper
from logeval.policies.shared.lazy_topk import BLOCK, MEMO, n_blocks, remembered_upper
from logeval.policies.shared.memory import floats
from logeval.running.arrays import Floats
from logeval.running.kernels import njit_inline, njit_views

SLACK = 1e-9  # more than the rounding of bounds
UNTIL, AHEAD, SOLVED = range(3)  # budget of the keys, how far ahead it was, bounds solved since
BEGIN = (-1.0, 0.01, 0.0)
LARGEST, FIRST, SECOND = range(3)  # of the keys of a block


class KeyedArms(NamedTuple):
    """The arms of one bandit."""

    S: Floats = floats("L")  # sum of the observations of each arm
    T: Floats = floats("L")  # their number
    key: Floats = floats("L")  # at least the bound, up to the budget state[UNTIL]
    blocks: Floats = floats(n_blocks, 3)  # of each block of keys LARGEST, FIRST, SECOND
    state: Floats = floats(3)  # UNTIL, AHEAD, SOLVED
    memo: Floats = floats(MEMO, 4, fill=-1.0, shared=True)


@njit_views
def summarise(block, arms):
    """The largest key of a block, the first arm with it, and the largest of other statistics."""
    S, T, key = arms.S, arms.T, arms.key
    first, largest, second = 0, -1.0, -1.0
    for e in range(block * BLOCK, min((block + 1) * BLOCK, key.shape[0])):
        if key[e] > largest:
            first, largest, second = e, key[e], largest
        elif key[e] > second and (S[e] != S[first] or T[e] != T[first]):
            second = key[e]
    summary = arms.blocks[block]
    summary[LARGEST], summary[FIRST], summary[SECOND] = largest, first, second


@njit_views
def set_keys(kind, b, arms):
    """New keys, for budgets from b on."""
    L, state = arms.S.shape[0], arms.state
    if state[SOLVED] > L:
        state[AHEAD] *= 0.5
    elif state[SOLVED] < 0.5 * L:
        state[AHEAD] *= 2.0
    state[UNTIL], state[SOLVED] = b + state[AHEAD], 0.0
    for e in range(L):
        arms.key[e] = remembered_upper(kind, arms.S[e], arms.T[e], state[UNTIL], arms.memo) + SLACK
    for block in range(arms.blocks.shape[0]):
        summarise(block, arms)


@njit_inline
def select_first(kind, b, arms):
    """The arm with the largest bound at budget b; b never falls."""
    S, T, key, blocks, state, memo = arms
    if b > state[UNTIL]:
        set_keys(kind, b, arms)
    n = blocks.shape[0]
    start = 0
    for block in range(1, n):
        if blocks[block, LARGEST] > blocks[start, LARGEST]:
            start = block
    arm, largest = -1, -1.0
    for turn in range(n + 1):
        block = start if turn == 0 else turn - 1  # the most promising first: it sets a high bar
        if blocks[block, LARGEST] < largest or (turn > 0 and block == start):
            continue
        first = int(blocks[block, FIRST])
        tied = first > arm >= 0 and S[first] == S[arm] and T[first] == T[arm]
        if tied and blocks[block, SECOND] < largest:
            continue  # arms tied with ours, and behind it; the others are below
        for e in range(block * BLOCK, min((block + 1) * BLOCK, S.shape[0])):
            if key[e] < largest or (e > arm >= 0 and S[e] == S[arm] and T[e] == T[arm]):
                continue
            U = remembered_upper(kind, S[e], T[e], b, memo)
            state[SOLVED] += 1.0
            if U > largest or (U == largest and e < arm):
                arm, largest = e, U
    return arm


@njit_inline
def touch_first(kind, e, arms):
    """Arm e was observed: its key, and those of its block."""
    if arms.state[UNTIL] > 0.0:  # there are keys
        arms.key[e] = upper(kind, arms.S[e], arms.T[e], arms.state[UNTIL]) + SLACK
        summarise(e // BLOCK, arms)
