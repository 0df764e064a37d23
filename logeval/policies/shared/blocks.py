"""Ordered blocks of items from a relation "i beats j": again and again those that nobody beats.

The first block holds the items that no item beats, the second those that only items of the first
beat, and so on. Where every item left is beaten by another one left, they are one block.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from logeval.policies.shared.places import copy
from logeval.running.arrays import Bools, Ints
from logeval.running.kernels import njit_inline, njit_views


class Pairs(NamedTuple):
    """Clicks on one item and not on another, of all replicas or of one."""

    S: Ints  # (L, L)
    N: Ints  # (L, L)


class Blocks(NamedTuple):
    """A relation and its blocks, of all replicas or of one."""

    beats: Bools  # (L, L) [i, j]: i beats j
    beaten: Ints  # (L,) by how many items
    left: Ints  # (L,) scratch: by how many of the items left
    level: Ints  # (L,) block of every item
    items: Ints  # (L,) block after block, labels of a block in increasing order
    end: Ints  # (L,) where each block ends; the last one at L


def no_pairs(R: int, L: int) -> Pairs:
    """Nothing seen yet: 8 L^2 bytes per replica, 6 MB at L = 871."""
    return Pairs(np.zeros((R, L, L), dtype=np.int32), np.zeros((R, L, L), dtype=np.int32))


def one_block(R: int, L: Ints) -> Blocks:
    """All items of each replica in one block."""
    widest = int(max(L))
    return Blocks(
        beats=np.zeros((R, widest, widest), dtype=np.bool_),
        beaten=np.zeros((R, widest), dtype=np.int64),
        left=np.zeros((R, widest), dtype=np.int64),
        level=np.zeros((R, widest), dtype=np.int64),
        items=np.tile(np.arange(widest), (R, 1)),
        end=np.repeat(np.asarray(L, dtype=np.int64)[:, None], widest, axis=1),
    )


@njit_inline
def blocks_of(r, L, blocks):
    """Those of replica r, which has L items."""
    return Blocks(
        blocks.beats[r, :L, :L], blocks.beaten[r, :L], blocks.left[r, :L], blocks.level[r, :L],
        blocks.items[r, :L], blocks.end[r, :L],
    )  # fmt: skip


@njit_inline
def pairs_of(r, L, pairs):
    """Those of replica r, which has L items."""
    return Pairs(pairs.S[r, :L, :L], pairs.N[r, :L, :L])


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
