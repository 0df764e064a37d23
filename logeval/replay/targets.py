"""Targets: the rankers whose value is asked for, as distributions over lists or over marginals.

The items of all queries are numbered as in the log's patterns; items that the log never showed
come after them. A target may be known by its lists, by its marginals alone (a table with
probabilities per rank), or by a formula (random).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from logeval.errors import LogevalError
from logeval.replay.prefixes import owners, prefix_numbers
from logeval.running.arrays import Floats, Ints, sum_by


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
    clicks_variance: Floats | None = field(default=None, kw_only=True)  # (Q,) of that mean

    @abstractmethod
    def item_positions(self) -> Floats:
        """h(a, k), (I, K)."""

    @abstractmethod
    def prefixes(self, items: Ints, query: Ints) -> tuple[Ints, Floats, Ints, Ints]:
        """Prefixes of the log's lists (P, K), their h, query and depth; one number for both."""

    @abstractmethod
    def whole_lists(self, items: Ints, query: Ints) -> tuple[Ints, Floats, Ints, Ints]:
        """The log's lists (P,) numbered, and h, query and length of each number."""

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

    def prefixes(self, items: Ints, query: Ints) -> tuple[Ints, Floats, Ints, Ints]:
        """One tree for the lists of the log and of the target."""
        node = prefix_numbers(np.concatenate([items, self.items]))
        n = int(node.max()) + 1
        own = node[len(items) :]
        at, k = np.nonzero(own >= 0)
        h = sum_by(own[at, k], self.probability[at], n)
        owner, depth = owners(node, np.concatenate([query, self.query]), n)
        return node[: len(items)], h, owner, depth

    def whole_lists(self, items: Ints, query: Ints) -> tuple[Ints, Floats, Ints, Ints]:
        """A list is the prefix at which it ends."""
        every = np.concatenate([items, self.items])
        node = prefix_numbers(every)
        n = int(node.max()) + 1
        end = node[np.arange(len(every)), (every >= 0).sum(axis=1) - 1]
        h = sum_by(end[len(items) :], self.probability, n)
        owner, depth = owners(node, np.concatenate([query, self.query]), n)
        return end[: len(items)], h, owner, depth + 1

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

    def prefixes(self, items: Ints, query: Ints) -> tuple[Ints, Floats, Ints, Ints]:
        """Not known."""
        raise self._unknown("Prefix and Cascade-DR")

    def whole_lists(self, items: Ints, query: Ints) -> tuple[Ints, Floats, Ints, Ints]:
        """Not known."""
        raise self._unknown("List")

    def lists(self) -> tuple[Ints, Ints, Floats]:
        """One list of one item at its place, for models whose clicks do not depend on the rest."""
        i, k = np.nonzero(self.h)
        items = np.full((len(i), self.K), -1, dtype=np.int64)
        items[np.arange(len(i)), k] = i
        return self.item_query[i], items, self.h[i, k]

    def _unknown(self, who: str) -> LogevalError:
        return LogevalError(
            f"target {self.name}: it gives probabilities per rank, and {who} needs those of whole "
            "lists; add a column `list` that numbers the lists, or choose IP, PBM, Item or DR"
        )


@dataclass(frozen=True)
class RandomTarget(Target):
    """Every list of K different items of the query is equally likely."""

    drawn: Ints  # (n, K) a sample of its lists, for click models
    drawn_query: Ints  # (n,)

    @cached_property
    def L(self) -> Ints:
        """Items of each query."""
        return np.bincount(self.item_query, minlength=self.Q)

    def item_positions(self) -> Floats:
        """1 / L."""
        return np.repeat(1.0 / self.L[self.item_query][:, None], self.K, axis=1)

    def prefixes(self, items: Ints, query: Ints) -> tuple[Ints, Floats, Ints, Ints]:
        """1 / (L (L - 1) ... (L - k + 1))."""
        node = prefix_numbers(items)
        owner, depth = owners(node, query, int(node.max()) + 1)
        return node, self._prefix_mass()[owner, depth], owner, depth

    def whole_lists(self, items: Ints, query: Ints) -> tuple[Ints, Floats, Ints, Ints]:
        """Lists of the log that are shorter than K are never drawn."""
        node = prefix_numbers(items)
        owner, depth = owners(node, query, int(node.max()) + 1)
        end = node[np.arange(len(items)), (items >= 0).sum(axis=1) - 1]
        h = np.where(depth == self.K - 1, self._prefix_mass()[owner, depth], 0.0)
        return end, h, owner, depth + 1

    def lists(self) -> tuple[Ints, Ints, Floats]:
        """The sample."""
        share = 1.0 / np.bincount(self.drawn_query, minlength=self.Q)
        return self.drawn_query, self.drawn, share[self.drawn_query]

    def _prefix_mass(self) -> Floats:
        left = self.L[:, None] - np.arange(self.K)
        return np.cumprod(1.0 / np.maximum(left, 1), axis=1).astype(np.float64)
