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

from logeval.replay.logged import Logged
from logeval.replay.targets.target import Target
from logeval.running.arrays import Bools, Floats, Ints


@dataclass(frozen=True)
class Cells:
    """The cells of one level that matter to a target.

    At the item-position level the K positions of an item follow each other, cell i K + k.
    """

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

    def propensities(self, N: Floats, n: Floats, smoothing: float) -> Floats:
        """How often the logger showed each cell (c, B), from the log itself or as logged; 0: never.

        The frequency of a cell is that of its N (c, B) SERPs among the n (Q, B) of its query;
        smoothing adds s SERPs to each of the D cells of a query and position,
        (N + s) / (n + s D).
        """
        if self.logged_p is not None:
            return np.repeat(self.logged_p[:, None], N.shape[1], axis=1)
        serps = n[self.query]
        if smoothing:
            seen = N > 0
            D = self.sums(seen.astype(np.float64))[self.query, self.position]
            return np.where(seen, (N + smoothing) / (serps + smoothing * D), 0.0)
        return np.divide(N, serps, out=np.zeros(N.shape), where=serps > 0)


def cells_of(level: str, logged: Logged, target: Target) -> Cells:
    """The cells of a level that the target shows: others have weight 0."""
    K, query = target.K, logged.patterns.query
    items, clicks = logged.patterns.items[:, :K], logged.patterns.clicks[:, :K]
    p, k = (x.astype(np.int32) for x in np.nonzero(items >= 0))  # a log has many: half as wide
    cell: Ints
    if level == "item-position":
        h = target.item_positions()
        keep = np.repeat(h.any(axis=1), K)  # all positions of an item
        owner, h, cell = np.repeat(target.item_query, K), h.ravel(), items[p, k] * K + k
        position = np.arange(len(h)) % K
    elif level == "position":
        h, owner = target.mass().ravel(), np.repeat(np.arange(target.Q), K)
        keep, position, cell = np.ones(len(h), np.bool_), np.arange(len(h)) % K, query[p] * K + k
    else:
        node, h, owner, position = target.prefixes(items, query, whole=level == "list")
        cell = node[p, k]
        if level == "list":  # which is known by the prefix where it ends
            end = node[np.arange(len(node)), (node >= 0).sum(axis=1) - 1]
            depth, owner = np.repeat(position, K), np.repeat(owner, K)
            position, cell = np.arange(len(depth)) % K, end[p] * K + k
            h = np.repeat(h, K) * (position <= depth)
        keep = h > 0
    place = np.full(len(h), -1, dtype=np.int64)
    place[keep] = np.arange(keep.sum())
    cell = place[cell]
    p, k, cell = p[cell >= 0], k[cell >= 0], cell[cell >= 0]
    owner, position, h = owner[keep], position[keep], h[keep]
    logged_p = first = None
    if logged.propensities is not None and level == "item-position":
        values, which = np.unique(logged.propensities[p, k], return_inverse=True)
        keys, cell = np.unique(cell * len(values) + which, return_inverse=True)
        logged_p, at = values[keys % len(values)], keys // len(values)
        owner, position, h = owner[at], position[at], h[at]
        first = np.diff(at, prepend=-1) > 0
    one, c, shape = np.ones(len(p), dtype=np.float32), clicks[p, k], (len(h), len(items))
    shown = sparse.csr_matrix((one, (cell, p)), shape=shape)
    clicked = sparse.csr_matrix((one[c], (cell[c], p[c])), shape=shape)
    mass = target.mass()
    return Cells(target.Q, K, owner, position, h, mass, shown, clicked, logged_p, first)
