"""What list policies that compare items share: blocks, counts of leaders, clicks at positions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from logeval.policies.shared.draws import hashed
from logeval.policies.shared.kernel_policy import floats, ints
from logeval.policies.shared.places import copy, shuffle_first
from logeval.running.arrays import Bools, Floats, Ints
from logeval.running.kernels import njit_inline, njit_views


class Pairs(NamedTuple):
    """Clicks on one item and not on another: 8 L^2 bytes per replica, 6 MB at L = 871.

    S_ij sums C_i - C_j and N_ij sums |C_i - C_j| over the rounds in which i and j were in a block,
    with C the click on an item (0 if it was not shown). Only a clicked item against one that was
    not clicked changes them.
    """

    S: Ints = ints("L", "L", dtype=np.int32)
    N: Ints = ints("L", "L", dtype=np.int32)


class Blocks(NamedTuple):
    """A relation "i beats j" and its ordered blocks: again and again those that nobody beats.

    The first block holds the items that no item beats, the second those that only items of the
    first beat, and so on. Where every item left is beaten by another one left, they are one block.
    TopRank and UniRank show blocks one after another, each in a fresh random order, and compare the
    clicks within a block (``Pairs``).
    """

    beats: Bools = ints("L", "L", dtype=np.bool_)  # [i, j]: i beats j
    beaten: Ints = ints("L")  # by how many items
    left: Ints = ints("L", shared=True)  # by how many of the items left
    level: Ints = ints("L")  # block of every item
    items: Ints = ints("L")  # block after block, labels of a block in increasing order
    end: Ints = ints("L")  # where each block ends; the last one at L, all at 0 before ``peel``


@njit_views
def relate(i, j, beats, blocks):
    """Item i now beats item j, or no longer does; whether that is news."""
    if blocks.beats[i, j] == beats:
        return False
    blocks.beats[i, j] = beats
    blocks.beaten[j] += 1 if beats else -1
    return True


@njit_views
def peel(blocks):
    """The blocks of the relation; a pair of items is looked at once."""
    L = blocks.items.shape[0]
    left, level, items, end = blocks.left, blocks.level, blocks.items, blocks.end
    copy(blocks.beaten, left)
    level[:] = -1
    start, b = 0, 0
    while start < L:
        stop = start
        for j in range(L):
            if level[j] < 0 and left[j] == 0:
                items[stop] = j
                stop += 1
        if stop == start:
            for j in range(L):
                if level[j] < 0:
                    items[stop] = j
                    stop += 1
        for k in range(start, stop):
            level[items[k]] = b
        for k in range(start, stop):
            row = blocks.beats[items[k]]
            for j in range(L):
                left[j] -= row[j]
        end[b] = stop
        start = stop
        b += 1


@njit_views
def show_blocks(u, items, end, held):
    """The first K items of the blocks, each block in a fresh random order."""
    K, start, b = held.shape[0], 0, 0
    while start < K:
        shuffle_first(items[start : end[b]], u[start:K])
        start = end[b]
        b += 1
    copy(items, held)


def comparing(settle: Any) -> Any:
    """The kernel that compares the clicks c on the items shown, block by block.

    ``settle(i, j, now, mine)`` follows each change of S_ij, where i was clicked and j was not.
    """

    @njit_inline
    def compare(now, mine, items, end, c):
        K, start, b = c.shape[0], 0, 0
        while start < K:
            for k in range(start, min(end[b], K)):
                if not c[k]:
                    continue
                i = items[k]
                for m in range(start, end[b]):
                    if m < K and c[m]:
                        continue
                    j = items[m]
                    mine.pairs.S[i, j] += 1
                    mine.pairs.S[j, i] -= 1
                    mine.pairs.N[i, j] += 1
                    mine.pairs.N[j, i] += 1
                    settle(i, j, now, mine)
            start = end[b]
            b += 1

    return compare


SETS, WAYS = 512, 8
SLACK = 1e-12  # more than the rounding of a budget


class Leaders(NamedTuple):
    """How often each leader has led, in a table of fixed size.

    UniRank and GRAB count the rounds of every leader (a partition of the items, or a list). A
    dictionary of all leaders has no bound over millions of steps, so the counts are kept like a
    processor's cache: a leader's 64-bit hash belongs to one of ``SETS`` sets of ``WAYS`` places,
    and a new leader takes an empty place, or that of the leader of its set that led least. One that
    was forgotten starts at 0 again. 64 KB per replica; ``lost`` counts what was forgotten.
    """

    key: Any = ints(SETS * WAYS, dtype=np.uint64)  # hashes; 0: empty
    tau: Ints = ints(SETS * WAYS)  # rounds as the leader
    now: Ints = ints(1)  # place of the present leader
    lost: Ints = ints(1)  # leaders forgotten


@njit_views
def hash_of(numbers):
    """The hash of a row of numbers below 2^20; never 0."""
    z = np.uint64(0)
    for k in range(numbers.shape[0]):
        z ^= hashed((k << 20) + numbers[k])
    return z | np.uint64(1)


@njit_views
def lead(numbers, leaders):
    """The leader that these numbers describe leads from now on."""
    key = hash_of(numbers)
    first = int((key >> np.uint64(1)) % np.uint64(SETS)) * WAYS
    least = first
    for i in range(first, first + WAYS):
        if leaders.key[i] == key:
            leaders.now[0] = i
            return
        if leaders.tau[i] < leaders.tau[least]:
            least = i
    leaders.lost[0] += leaders.key[least] != 0
    leaders.key[least], leaders.tau[least] = key, 0
    leaders.now[0] = least


@njit_views
def leader_budget(tau):
    """log tau + 3 log log tau; without bound for tau < 3, where the index is 1."""
    return math.log(tau) + 3.0 * math.log(math.log(tau)) if tau >= 3 else math.inf


class ItemPositions(NamedTuple):
    """Clicks and views of items at positions."""

    S: Ints = ints("L", "K")
    T: Ints = ints("L", "K")
    value: Floats = floats("L", "K")  # rho, or its upper bound


@njit_views
def count(held, c, cells):
    """Count the views and clicks of a list."""
    for k in range(held.shape[0]):
        cells.T[held[k], k] += 1
        cells.S[held[k], k] += c[k]
