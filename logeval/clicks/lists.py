"""What the log showed: the lists of each query, how often, and the clicks on them.

Today's ranker is known from the log alone: it shows these lists with these frequencies. They are
kept beside the models fitted to them, so that a simulator can show them too (``policies.logged``),
and what it says of them can be compared with what the log says.

Clicks are kept by the number of positions that count: ``clicks[k]`` of a list are the clicks on
its first k + 1 positions, added over its SERPs, and ``squares[k]`` their squares, which the
standard error of clicks per SERP needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from logeval.clicks.disk import filled, lists_of, query_columns
from logeval.clicks.estimation.patterns import FoldedClicks, Patterns
from logeval.log.queries import Query
from logeval.running.arrays import Floats, Ints, place_of, sum_by
from logeval.storage.schemas import LISTS

MOST_QUERIES = 10_000  # whose lists are kept, the most frequent first
MOST_LISTS = 10_000  # of a query, the most frequent first


class Ranker(NamedTuple):
    """Today's ranker on one query, in the items of a click model."""

    A: Ints  # (n, K) rows of the model's items
    p: Floats  # (n,) how often each list is shown; they sum to 1
    serps: float  # SERPs that showed one of these lists
    covered: float  # share of the query's SERPs that these are
    clicks: float  # logged clicks per SERP, on the first K positions
    error: float  # standard error of these; nan with one SERP


@dataclass(frozen=True)
class Lists:
    """The distinct lists of some queries; those of a query follow each other, most shown first."""

    queries: list[Query]
    query: Ints  # (N,) index of the query, ascending
    items: Ints  # (N, K) item ids
    length: Ints  # (N,)
    serps: Floats  # (N,)
    clicks: Floats  # (N, K) on the first k + 1 positions
    squares: Floats  # (N, K) of the same, SERP by SERP

    @classmethod
    def of(cls, data: FoldedClicks) -> Lists:
        """The lists of folded clicks."""
        queries = data.queries[:MOST_QUERIES]
        parts = [_distinct(block, len(queries)) for block in data.blocks()]
        rows, serps, clicks, squares, items, length, query = (
            np.concatenate(column) for column in zip(*parts, strict=True)
        )
        order = np.lexsort((rows, -serps, query))
        first = np.searchsorted(query[order], np.arange(len(queries)))
        order = order[np.arange(len(order)) - first[query[order]] < MOST_LISTS]
        ids = np.where(items >= 0, data.item_ids[items], 0)
        arrays = (query, ids, length, serps, clicks, squares)
        return cls(queries, *(array[order] for array in arrays))

    def table(self) -> pa.Table:
        """As in ``lists.parquet``."""
        inside = np.arange(self.items.shape[1]) < self.length[:, None]
        columns = query_columns(self.queries, self.query)
        columns["serps"] = pa.array(self.serps.astype(np.int64))
        for name in ("items", "clicks", "squares"):
            values = getattr(self, name)[inside].astype(np.int64)
            columns[name] = lists_of(self.length, values)
        return filled(columns, LISTS)

    @classmethod
    def read(cls, table: pa.Table) -> Lists:
        """From ``lists.parquet``."""
        keys = list(zip(table["query_id"].to_pylist(), table["region_id"].to_pylist(), strict=True))
        index = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        query = np.array([index[key] for key in keys], dtype=np.int64)
        length = pc.list_value_length(table["items"]).to_numpy().astype(np.int64)
        inside = np.arange(int(length.max(initial=0))) < length[:, None]
        arrays = []
        for name in ("items", "clicks", "squares"):
            x = np.zeros(inside.shape, dtype=np.int64 if name == "items" else np.float64)
            x[inside] = pc.list_flatten(table[name]).to_numpy()
            arrays.append(x)
        serps = table["serps"].to_numpy().astype(np.float64)
        return cls([Query(*key) for key in index], query, arrays[0], length, serps, *arrays[1:])

    @cached_property
    def _span(self) -> dict[Query, slice]:
        bounds = np.searchsorted(self.query, np.arange(len(self.queries) + 1)).tolist()
        return {q: slice(bounds[i], bounds[i + 1]) for i, q in enumerate(self.queries)}

    def ranker(self, query: Query, items: Ints, K: int) -> Ranker | None:
        """Today's ranker with lists of K of the ``items``; None where the log has no such list.

        Lists that are shorter, that show an item twice, or one that is not among ``items``, cannot
        be simulated: they are left out, and ``covered`` says what is left.
        """
        mine = self._span.get(query)
        if mine is None:
            return None
        ids = self.items[mine, :K]
        if ids.shape[1] < K:
            return None
        rows = place_of(ids, items)
        ranked = np.sort(rows, axis=1)
        usable = (rows >= 0).all(axis=1) & (self.length[mine] >= K)
        usable &= (ranked[:, 1:] != ranked[:, :-1]).all(axis=1)
        if not usable.any():
            return None
        serps, every = self.serps[mine][usable], float(self.serps[mine].sum())
        A, group = np.unique(rows[usable], axis=0, return_inverse=True)
        n = float(serps.sum())
        mean = float(self.clicks[mine, K - 1][usable].sum()) / n
        square = float(self.squares[mine, K - 1][usable].sum()) / n
        error = np.sqrt(max(square - mean**2, 0.0) / (n - 1)) if n > 1 else np.nan
        p = sum_by(group.ravel(), serps, len(A)) / n
        by_share = np.argsort(-p, kind="stable")
        return Ranker(A[by_share], p[by_share], n, n / every, mean, float(error))


def _distinct(block: Patterns, Q: int) -> tuple[Ints, Floats, Floats, Floats, Ints, Ints, Ints]:
    """Of the lists of the first Q queries in a block: a pattern, SERPs, clicks, squares, ..."""
    block = block.take(block.query < Q)
    code = block.query.astype(np.int64)
    for k in range(block.K):  # number the lists, one position after the other
        code, _ = pd.factorize(code * (block.I + 1) + block.items[:, k] + 1)
    _, first = np.unique(code, return_index=True)
    n, so_far = len(first), np.cumsum(block.clicks, axis=1)
    sums = [
        np.stack([sum_by(code, block.count * so_far[:, k] ** e, n) for k in range(block.K)], axis=1)
        for e in (1, 2)
    ]
    serps = sum_by(code, block.count, n)
    of = block.items[first], block.length[first], block.query[first]
    return first, serps, sums[0], sums[1], *of
