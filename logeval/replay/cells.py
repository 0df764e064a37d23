"""Cells: what the weights of an estimator depend on, and which SERPs fall into each.

level            a cell is                         its clicks
item-position    an item at a position             at that position
prefix           the first k items                 at position k
list             the whole list, and a position k  at position k
position         a position                        at that position

Every estimator is a sum over the cells of one level of clicks times a weight. How many SERPs
and clicks a cell has is a matrix product with the number of SERPs of each pattern, so that many
resampled logs are one product.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from logeval.replay.targets import Target
from logeval.running.arrays import Bools, Floats, Ints

LEVELS = ("item-position", "prefix", "list", "position")


@dataclass(frozen=True)
class Cells:
    """The cells of one level that matter to a target.

    At the item-position level the K positions of an item follow each other, cell i K + k.
    """

    level: str
    Q: int
    K: int
    query: Ints  # (c,)
    position: Ints  # (c,) from 0
    h: Floats  # (c,) probability that the target shows the cell
    mass: Floats  # (Q, K) probability that the target shows anything at a position
    shown: sparse.csr_matrix  # (c, P) 1 where a SERP of the pattern falls into the cell
    clicked: sparse.csr_matrix  # (c, P) 1 where it is also clicked there
    logged_p: Floats | None = None  # (c,) logged propensity, where those are used; a cell each
    first: Bools | None = None  # (c,) the first of the cells that differ by that alone

    @cached_property
    def by_position(self) -> sparse.csr_matrix:
        """(Q K, c) sums over the cells of a query and position."""
        c = len(self.query)
        row = self.query * self.K + self.position
        one = np.ones(c, dtype=np.float32)
        return sparse.csr_matrix((one, (row, np.arange(c))), shape=(self.Q * self.K, c))

    def sums(self, values: Floats) -> Floats:
        """The sums of cell values (c, B) by query and position, (Q, K, B)."""
        total: Floats = (self.by_position @ values).reshape(self.Q, self.K, -1)
        return total

    def predicted(self, clicks: Floats) -> sparse.csr_matrix:
        """As ``clicked``, with a model's click probabilities (P, K) in place of the clicks."""
        at = self.shown.tocoo()
        values = clicks[at.col, self.position[at.row]]
        return sparse.csr_matrix((values, (at.row, at.col)), shape=self.shown.shape)


def cells_of(
    level: str, items: Ints, clicks: Ints, query: Ints, target: Target, propensity: Floats | None
) -> Cells:
    """The cells of a level; items, clicks (P, K) and query (P,) are those of the log's patterns."""
    return {
        "item-position": _item_positions,
        "prefix": _prefixes,
        "list": _lists,
        "position": _positions,
    }[level](items, clicks, query, target, propensity)


def _item_positions(
    items: Ints, clicks: Ints, query: Ints, target: Target, propensity: Floats | None
) -> Cells:
    K = items.shape[1]
    h = target.item_positions()  # (I, K)
    wanted = np.flatnonzero(h.sum(axis=1) > 0)
    place = np.full(len(h), -1, dtype=np.int64)
    place[wanted] = np.arange(len(wanted))
    p, k = _where(items)
    i = place[items[p, k]]
    used = i >= 0
    p, k = p[used], k[used]
    cell = i[used] * K + k
    owner = np.repeat(target.item_query[wanted], K)
    position = np.tile(np.arange(K), len(wanted))
    mass = h[wanted].ravel()
    logged = first = None
    if propensity is not None:  # a cell for every propensity that was logged
        values, which = np.unique(propensity[p, k], return_inverse=True)
        keys, cell = np.unique(cell * len(values) + which, return_inverse=True)
        logged, at = values[keys % len(values)], keys // len(values)
        owner, position, mass = owner[at], position[at], mass[at]
        first = np.diff(at, prepend=-1) > 0
    return _cells(
        "item-position", target, K, owner, position, mass, p, k, cell, clicks, logged, first
    )


def _prefixes(
    items: Ints, clicks: Ints, query: Ints, target: Target, propensity: Floats | None
) -> Cells:
    K = items.shape[1]
    node, h, owner, depth = target.prefixes(items, query)
    p, k = _where(node)
    return _kept("prefix", target, K, owner, depth, h, p, k, node[p, k], clicks)


def _lists(
    items: Ints, clicks: Ints, query: Ints, target: Target, propensity: Floats | None
) -> Cells:
    K = items.shape[1]
    whole, h, owner, length = target.whole_lists(items, query)
    p, k = _where(items)
    position = np.tile(np.arange(K), len(h))
    h = np.repeat(h, K) * (position < np.repeat(length, K))
    cell = whole[p] * K + k
    return _kept("list", target, K, np.repeat(owner, K), position, h, p, k, cell, clicks)


def _positions(
    items: Ints, clicks: Ints, query: Ints, target: Target, propensity: Floats | None
) -> Cells:
    K, Q = items.shape[1], target.Q
    p, k = _where(items)
    owner, position = np.repeat(np.arange(Q), K), np.tile(np.arange(K), Q)
    cell = query[p] * K + k
    return _cells("position", target, K, owner, position, target.mass().ravel(), p, k, cell, clicks)


def _where(items: Ints) -> tuple[Ints, Ints]:
    """Row and column of everything that is there; half as wide as NumPy's, a log has many."""
    p, k = np.nonzero(items >= 0)
    return p.astype(np.int32), k.astype(np.int32)


def _kept(
    level: str, target: Target, K: int, owner: Ints, position: Ints, h: Floats, p: Ints, k: Ints,
    cell: Ints, clicks: Ints,
) -> Cells:  # fmt: skip
    """Only the cells that the target shows: the others have weight 0."""
    keep = np.flatnonzero(h > 0)
    place = np.full(len(h), -1, dtype=np.int64)
    place[keep] = np.arange(len(keep))
    cell = place[cell]
    used = cell >= 0
    return _cells(
        level, target, K, owner[keep], position[keep], h[keep], p[used], k[used], cell[used], clicks
    )


def _cells(
    level: str, target: Target, K: int, owner: Ints, position: Ints, h: Floats, p: Ints, k: Ints,
    cell: Ints, clicks: Ints, logged: Floats | None = None, first: Bools | None = None,
) -> Cells:  # fmt: skip
    shape = (len(h), len(clicks))
    one = np.ones(len(p), dtype=np.float32)
    shown = sparse.csr_matrix((one, (cell, p)), shape=shape)
    c = clicks[p, k]
    clicked = sparse.csr_matrix((one[c], (cell[c], p[c])), shape=shape)
    return Cells(
        level, target.Q, K, owner, position, h, target.mass(), shown, clicked, logged, first
    )
