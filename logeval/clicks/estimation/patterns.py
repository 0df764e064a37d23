"""Click statistics as arrays: what every estimator works on.

A pattern is a (query, list, clicks) that was seen ``count`` times. The items of all queries
are numbered consecutively, so that ``w[patterns.items]`` is the attraction at every position,
and one pass over the arrays serves any number of queries.

Estimators ask for ``FoldedClicks``, which come in blocks of whole queries: ``Patterns``, in memory,
are one block; those of a log that is too large for that are read from disk (``statistics.stored``).

Counts that several models share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from logeval.log.queries import Query
from logeval.running.arrays import Bools, Floats, Ints, distinct, sum_by

NO_REGION = np.iinfo(np.int64).min
BY_PATTERN = ("query", "items", "clicks", "length", "count")  # the arrays with a row per pattern


class FoldedClicks(ABC):
    """P patterns of Q queries with I (query, item) pairs in all, at most K positions."""

    queries: list[Query]
    item_ids: Ints  # (I,)
    offsets: Ints  # (Q + 1,) pairs of query q are offsets[q]:offsets[q + 1]

    @property
    @abstractmethod
    def K(self) -> int:
        """The longest list of all."""

    @property
    @abstractmethod
    def P(self) -> int:
        """The number of patterns."""

    @abstractmethod
    def blocks(self) -> Iterator[Patterns]:
        """The patterns, some whole queries at a time, numbered as in all of them."""

    def in_memory(self) -> Patterns:
        """All of them as one block."""
        first, *others = self.blocks()
        if not others:
            return first
        blocks = [first, *others]
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(block, name) for block in blocks]) for name in BY_PATTERN
        }
        return replace(first, **joined)

    @property
    def Q(self) -> int:
        """The number of queries."""
        return len(self.queries)

    @property
    def I(self) -> int:  # noqa: E743 - named as in the formulas
        """The number of (query, item) pairs."""
        return len(self.item_ids)

    def total(self, count: Callable[[Patterns], tuple[Floats, ...]]) -> tuple[Floats, ...]:
        """The sums over all blocks of what ``count`` makes of each."""
        blocks = self.blocks()
        sums = count(next(blocks))
        for block in blocks:
            for whole, part in zip(sums, count(block), strict=True):
                whole += part
        return sums

    @cached_property
    def positions(self) -> Ints:
        """The longest list of each query, (Q,)."""
        longest = np.zeros(self.Q, dtype=np.int64)
        for block in self.blocks():
            np.maximum.at(longest, block.query, block.length)
        return longest

    @cached_property
    def item_query(self) -> Ints:
        """The query of each (query, item) pair, (I,)."""
        return np.repeat(np.arange(self.Q), np.diff(self.offsets))

    @cached_property
    def _shown_and_clicked(self) -> tuple[Floats, ...]:
        return self.total(lambda b: (b.sum_items(b.shown.count), b.sum_items(b.shown.clicks)))

    @property
    def impressions(self) -> Floats:
        """How often each (query, item) pair was shown, (I,)."""
        return self._shown_and_clicked[0]

    @property
    def item_clicks(self) -> Floats:
        """How often each (query, item) pair was clicked, (I,)."""
        return self._shown_and_clicked[1]

    @cached_property
    def serps(self) -> Floats:
        """The number of SERPs of each query, (Q,)."""
        (serps,) = self.total(lambda block: (sum_by(block.query, block.count, self.Q),))
        return serps

    @cached_property
    def base(self) -> list[Ints]:
        """The list of each query that was shown most often, as item ids.

        Of lists shown equally often, the one that comes first in the patterns.
        """
        found = [np.empty(0, dtype=np.int64)] * self.Q
        for block in self.blocks():
            for row in block.most_shown():
                shown = block.items[row, : block.length[row]]
                found[block.query[row]] = self.item_ids[shown]
        return found


@dataclass(frozen=True)
class Patterns(FoldedClicks):
    """Patterns in memory."""

    queries: list[Query]
    query: Ints  # (P,) index of the query
    items: Ints  # (P, K) index of the (query, item) pair, -1 beyond the end of the list
    clicks: Bools  # (P, K)
    length: Ints  # (P,)
    count: Floats  # (P,) number of SERPs
    item_ids: Ints  # (I,)
    offsets: Ints  # (Q + 1,)

    @property
    def K(self) -> int:
        """The longest list of all."""
        return self.items.shape[1]

    @property
    def P(self) -> int:
        """The number of patterns."""
        return len(self.count)

    def blocks(self) -> Iterator[Patterns]:
        """All at once."""
        yield self

    @cached_property
    def shown(self) -> Shown:
        """Every (pattern, position) that shows an item, flat."""
        p, k = np.nonzero(self.items >= 0)
        return Shown(p, k, self.items[p, k], self.clicks[p, k], self.count[p], self.query[p])

    @cached_property
    def last_click(self) -> Ints:
        """The last clicked position of each pattern, from 0; -1 without a click."""
        return np.where(self.clicks, np.arange(self.K), -1).max(axis=1, initial=-1)

    @cached_property
    def first_click(self) -> Ints:
        """The first clicked position of each pattern, from 0; K without a click."""
        return np.where(self.clicks, np.arange(self.K), self.K).min(axis=1, initial=self.K)

    def most_shown(self) -> Ints:
        """A pattern of each query here, of the list that was shown most often."""
        code = self.query.astype(np.int64)
        for k in range(self.K):  # number the lists, one position after the other
            code, _ = pd.factorize(code * (self.I + 1) + self.items[:, k] + 1)
        lists, first = np.unique(code, return_index=True)
        shown = sum_by(code, self.count, len(lists))
        order = np.lexsort((first, -shown, self.query[first]))
        _, best = np.unique(self.query[first][order], return_index=True)
        return np.asarray(first[order[best]])

    def only(self, queries: set[Query]) -> Patterns:
        """The patterns of those queries; queries and items keep their numbers."""
        wanted = np.array([query in queries for query in self.queries], dtype=np.bool_)
        return self.take(wanted[self.query])

    def take(self, rows: Ints | Bools) -> Patterns:
        """Some of the patterns."""
        return replace(self, **{name: getattr(self, name)[rows] for name in BY_PATTERN})

    def weighted(self, count: Floats) -> Patterns:
        """The same patterns, seen so often; what depends on the lists alone is not made again."""
        found = replace(self, count=count)
        same = ("last_click", "first_click", "positions", "item_query")
        vars(found).update({name: vars(self)[name] for name in same if name in vars(self)})
        vars(found)["shown"] = replace(self.shown, count=count[self.shown.pattern])
        return found

    def sum_items(self, weight: Floats) -> Floats:
        """Sums of a weight per shown (pattern, position), by (query, item) pair."""
        return sum_by(self.shown.item, weight, self.I)


class Counted(Patterns):
    """Impressions and clicks by query, item and position, of which no page is known.

    Each is a list with one item at its position, and holes before it. A query has as many SERPs as
    the position that was shown most; which lists they had is not known.
    """

    @cached_property
    def serps(self) -> Floats:
        """The impressions of the position of each query that was shown most, (Q,)."""
        shown = self.shown
        cell = shown.query * self.K + shown.position
        return sum_by(cell, shown.count, self.Q * self.K).reshape(self.Q, -1).max(axis=1)

    @cached_property
    def base(self) -> list[Ints]:
        """Unknown."""
        return [np.empty(0, dtype=np.int64)] * self.Q


@dataclass(frozen=True)
class Shown:
    """Flat arrays over every shown (pattern, position)."""

    pattern: Ints
    position: Ints
    item: Ints
    clicked: Bools
    count: Floats
    query: Ints

    @cached_property
    def clicks(self) -> Floats:
        """The count where it was clicked, else 0."""
        return self.count * self.clicked


def patterns_of(statistics: pa.Table, queries: list[Query] | None = None) -> Patterns:
    """The arrays of a click statistics table; queries in the order given, or by frequency."""
    query, seen = query_index(statistics)
    count = statistics["count"].to_numpy().astype(np.float64)
    lists = _chunk(statistics["items"])
    length = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    bits = statistics["clicks"].to_numpy()

    order = _order(query, seen, count, queries)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    query = rank[query]

    row = np.repeat(np.arange(len(length)), length)
    column = np.arange(len(row)) - np.repeat(np.cumsum(length) - length, length)
    ids = lists.flatten()
    if ids.null_count:  # holes
        there = ids.is_valid().to_numpy(zero_copy_only=False)
        row, column, ids = row[there], column[there], ids.drop_null()
    pair, pair_query, pair_ids = _pairs(query[row], len(order), ids, count[row])
    K = int(length.max(initial=0))
    items = np.full((len(length), K), -1, dtype=np.int64)
    items[row, column] = pair
    clicks = np.zeros((len(length), K), dtype=np.bool_)
    clicks[row, column] = (bits[row] >> column) & 1
    offsets = np.searchsorted(pair_query, np.arange(len(order) + 1))
    return Patterns(
        [seen[i] for i in order], query, items, clicks, length, count, pair_ids, offsets
    )


def _pairs(query: Ints, Q: int, item_ids: pa.Array, count: Floats) -> tuple[Ints, Ints, Ints]:
    """Number the (query, item) pairs: by query, then the most shown first, then by id."""
    encoded = item_ids.dictionary_encode()
    ids, code = encoded.dictionary.to_numpy(), encoded.indices.to_numpy()
    keys, group = distinct(query * len(ids) + code, Q * len(ids))
    impressions = sum_by(group, count, len(keys))
    q, i = keys // max(len(ids), 1), ids[keys % max(len(ids), 1)]
    order = np.lexsort((i, -impressions, q))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place[group], q[order], i[order]


def query_index(statistics: pa.Table) -> tuple[Ints, list[Query]]:
    """The index of each row's query, and the queries in order of id and region."""
    q = statistics["query_id"].to_numpy()
    r = pc.fill_null(statistics["region_id"], NO_REGION).to_numpy()
    by = np.lexsort((r, q))
    new = np.ones(len(by), dtype=np.bool_)
    new[1:] = (q[by][1:] != q[by][:-1]) | (r[by][1:] != r[by][:-1])
    index = np.empty(len(by), dtype=np.int64)
    index[by] = np.cumsum(new) - 1
    first = by[new]
    regions = [None if x == NO_REGION else x for x in r[first].tolist()]
    return index, [Query(*pair) for pair in zip(q[first].tolist(), regions, strict=True)]


def _order(query: Ints, seen: list[Query], count: Floats, queries: list[Query] | None) -> Ints:
    if queries is not None:
        wanted = {q: i for i, q in enumerate(queries)}
        return np.array(sorted(range(len(seen)), key=lambda i: wanted[seen[i]]), dtype=np.int64)
    serps = sum_by(query, count, len(seen))
    return np.argsort(-serps, kind="stable")


def _chunk(column: pa.ChunkedArray) -> pa.ListArray:
    array = column.combine_chunks()
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


def up_to_last_click(data: FoldedClicks) -> tuple[Floats, Floats]:
    """Clicks and impressions of each item down to the last click; without one, all of them."""

    def count(block: Patterns) -> tuple[Floats]:
        shown = block.shown
        last = np.where(block.last_click < 0, block.K, block.last_click)
        return (block.sum_items(shown.count * (shown.position <= last[shown.pattern])),)

    return data.item_clicks, data.total(count)[0]


def up_to_first_click(data: FoldedClicks) -> tuple[Floats, Floats]:
    """First clicks, and impressions down to the first click, of each item."""

    def count(block: Patterns) -> tuple[Floats, Floats]:
        shown = block.shown
        first = block.first_click[shown.pattern]
        clicks = block.sum_items(shown.count * (shown.position == first))
        return clicks, block.sum_items(shown.count * (shown.position <= first))

    clicks, examined = data.total(count)
    return clicks, examined


def last_clicks(data: FoldedClicks) -> tuple[Floats, Floats]:
    """Last clicks, and clicks, of each item."""

    def count(block: Patterns) -> tuple[Floats]:
        shown = block.shown
        last = shown.position == block.last_click[shown.pattern]
        return (block.sum_items(shown.count * last),)

    return data.total(count)[0], data.item_clicks


def by_position(data: FoldedClicks, G: int, group: Ints) -> tuple[Floats, Floats]:
    """Clicks and impressions of each group and position, (G, K)."""

    def count(block: Patterns) -> tuple[Floats, Floats]:
        shown = block.shown
        cell = group[shown.query] * data.K + shown.position
        clicks, impressions = (sum_by(cell, x, G * data.K) for x in (shown.clicks, shown.count))
        return clicks.reshape(G, -1), impressions.reshape(G, -1)

    clicks, impressions = data.total(count)
    return clicks, impressions
