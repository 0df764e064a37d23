"""Targets: the rankers whose value is asked for, as distributions over lists or over marginals.

The items of all queries are numbered as in the log's patterns; items that the log never showed
come after them. A target may be known by its lists, by its marginals alone (a table with
probabilities per rank), or by a formula (random).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from logeval.errors import LogevalError
from logeval.running.arrays import Floats, Ints, sum_by


def prefix_numbers(items: Ints) -> Ints:
    """The number of every prefix (n, K): equal prefixes have equal numbers; -1 beyond the end."""
    node = np.full(items.shape, -1, dtype=np.int64)
    size = int(items.max(initial=0)) + 1
    parent, n = np.zeros(len(items), dtype=np.int64), 0
    for k in range(items.shape[1]):
        there = np.flatnonzero(items[:, k] >= 0)
        _, number = np.unique(parent[there] * size + items[there, k], return_inverse=True)
        parent[there] = number
        node[there, k] = n + number
        n += int(number.max(initial=-1)) + 1
    return node


def _tree(items: Ints, query: Ints) -> tuple[Ints, Ints, Ints]:
    """The number of every prefix (n, K), and query and depth of each number."""
    node = prefix_numbers(items)
    owner, depth = np.empty((2, int(node.max()) + 1), dtype=np.int64)
    p, k = np.nonzero(node >= 0)
    owner[node[p, k]], depth[node[p, k]] = query[p], k
    return node, owner, depth


@dataclass(frozen=True)
class Target(ABC):
    """A ranker of Q queries, cut to K positions; a subclass says how its lists are drawn."""

    name: str
    Q: int
    K: int
    item_query: Ints  # (I,) the query of every item, those the log never showed at the end
    item_ids: Ints  # (I,)
    serps: Floats | None = field(default=None, kw_only=True)  # (Q,) weight of each query
    clicks: Floats | None = field(default=None, kw_only=True)  # (Q,) true clicks per SERP

    @abstractmethod
    def item_positions(self) -> Floats:
        """h(a, k), (I, K)."""

    @abstractmethod
    def prefixes(self, items: Ints, query: Ints, whole: bool) -> tuple[Ints, Floats, Ints, Ints]:
        """Prefixes of the log's lists (P, K) by number, and h, query and depth of each number.

        h is that of lists that begin so, or with ``whole`` of those that are no longer.
        """

    @abstractmethod
    def lists(self) -> tuple[Ints, Ints, Floats]:
        """Query (n,), items (n, K) and probability (n,): for the value under a click model."""

    def mass(self) -> Floats:
        """The probability that a list has a position, (Q, K)."""
        h = self.item_positions()
        return np.stack([sum_by(self.item_query, h[:, k], self.Q) for k in range(self.K)], axis=1)


@dataclass(frozen=True)
class ListTarget(Target):
    """A distribution over lists; the probabilities of a query add up to 1."""

    query: Ints  # (n,)
    items: Ints  # (n, K), -1 beyond the end
    probability: Floats  # (n,)

    def item_positions(self) -> Floats:
        """h(a, k), the sum over the lists with item a at position k."""
        n, k = np.nonzero(self.items >= 0)
        size = len(self.item_query) * self.K
        cell = self.items[n, k] * self.K + k
        return sum_by(cell, self.probability[n], size).reshape(-1, self.K)

    def prefixes(self, items: Ints, query: Ints, whole: bool) -> tuple[Ints, Floats, Ints, Ints]:
        """One tree for the lists of the log and of the target."""
        node, owner, depth = _tree(
            np.concatenate([items, self.items]), np.concatenate([query, self.query])
        )
        own = node[len(items) :]
        at, k = np.nonzero(own >= 0)
        if whole:
            last = k == (own >= 0).sum(axis=1)[at] - 1
            at, k = at[last], k[last]
        h = sum_by(own[at, k], self.probability[at], len(owner))
        return node[: len(items)], h, owner, depth

    def lists(self) -> tuple[Ints, Ints, Floats]:
        """As given."""
        return self.query, self.items, self.probability


@dataclass(frozen=True)
class MarginalTarget(Target):
    """A ranker known by h(a, k) alone."""

    h: Floats  # (I, K)

    def item_positions(self) -> Floats:
        """As given."""
        return self.h

    def prefixes(self, items: Ints, query: Ints, whole: bool) -> tuple[Ints, Floats, Ints, Ints]:
        """Not known."""
        raise LogevalError(
            f"target {self.name}: it gives probabilities per rank, and "
            f"{'List' if whole else 'Prefix and Cascade-DR'} needs those of whole lists; add a "
            "column `list` that numbers the lists, or choose IP, PBM, Item or DR"
        )

    def lists(self) -> tuple[Ints, Ints, Floats]:
        """One list of one item at its place, for models whose clicks do not depend on the rest."""
        i, k = np.nonzero(self.h)
        items = np.full((len(i), self.K), -1, dtype=np.int64)
        items[np.arange(len(i)), k] = i
        return self.item_query[i], items, self.h[i, k]


@dataclass(frozen=True)
class RandomTarget(Target):
    """Every list of K different items of the query is equally likely; none where it has fewer."""

    query: Ints  # (n,)
    items: Ints  # (n, K) a sample of its lists, for click models

    def _h(self) -> Floats:
        """h of a prefix of k items, 1 / (L (L - 1) ... (L - k + 1)), (Q, K)."""
        L = np.bincount(self.item_query, minlength=self.Q)
        left = L[:, None] - np.arange(self.K)
        h = np.cumprod(1.0 / np.maximum(left, 1), axis=1)
        return np.where(L[:, None] >= self.K, h, 0.0)

    def item_positions(self) -> Floats:
        """1 / L."""
        return np.repeat(self._h()[self.item_query, :1], self.K, axis=1)

    def prefixes(self, items: Ints, query: Ints, whole: bool) -> tuple[Ints, Floats, Ints, Ints]:
        """Lists of the log that are shorter than K are never drawn."""
        node, owner, depth = _tree(items, query)
        h = self._h()[owner, depth]
        return node, np.where(depth == self.K - 1, h, 0.0) if whole else h, owner, depth

    def lists(self) -> tuple[Ints, Ints, Floats]:
        """The sample."""
        share = 1.0 / np.maximum(np.bincount(self.query, minlength=self.Q), 1)
        return self.query, self.items, share[self.query]
