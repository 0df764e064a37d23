"""Patterns of a log that is too large for memory, on disk.

The click statistics are sorted by query. They are cut into blocks of whole queries, and each block
is written to a file as the arrays of its own ``Patterns``. In memory are only the queries, the
(query, item) pairs and, for each block, which numbers its queries and pairs have among all: as in
``patterns_of``, the most frequent query is first. A pass of EM reads the file once, block by block.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from logeval.clicks.estimation.patterns import BY_PATTERN, FoldedClicks, Patterns, patterns_of
from logeval.log.queries import Query
from logeval.running.arrays import Ints
from logeval.storage.schemas import CLICK_STATISTICS

BLOCK = 100_000  # patterns, about


@dataclass(frozen=True)
class StoredPatterns(FoldedClicks):
    """Patterns in a file, which is gone with the object."""

    queries: list[Query]
    item_ids: Ints  # (I,)
    offsets: Ints  # (Q + 1,)
    size: tuple[int, int]  # P, K
    numbers: list[tuple[Ints, Ints]] = field(repr=False)  # of the queries and pairs of each block
    file: IO[bytes] = field(repr=False)

    def __post_init__(self) -> None:
        weakref.finalize(self, self.file.close)

    @property
    def P(self) -> int:
        """The number of patterns."""
        return self.size[0]

    @property
    def K(self) -> int:
        """The longest list of all."""
        return self.size[1]

    def blocks(self) -> Iterator[Patterns]:
        """The patterns as they are read."""
        self.file.seek(0)
        for queries, pairs in self.numbers:
            query, items, clicks, length, count = (np.load(self.file) for _ in BY_PATTERN)
            if more := self.K - items.shape[1]:
                items = np.pad(items, ((0, 0), (0, more)), constant_values=-1)
                clicks = np.pad(clicks, ((0, 0), (0, more)))
            yield Patterns(
                self.queries,
                queries[query],
                pairs[items],
                clicks,
                length,
                count,
                self.item_ids,
                self.offsets,
            )


def store(statistics: Path, *, holdout: bool = False, block: int = BLOCK) -> StoredPatterns | None:
    """The training rows of a click statistics file, or the held-out ones; None without rows."""
    file = tempfile.TemporaryFile(prefix="logeval-")  # noqa: SIM115 - as long as the patterns live
    parts: list[Patterns] = []  # with their arrays taken out
    K = P = 0
    for table in _whole_queries(statistics, holdout, block):
        data = patterns_of(table)
        for name in BY_PATTERN:
            array = getattr(data, name)
            np.save(file, array.astype(np.int32) if name == "items" else array)
        K, P = max(K, data.K), P + data.P
        serps = data.serps  # kept, as a cached property, when the arrays are gone
        parts.append(data.take(np.zeros(0, dtype=np.int64)))
        parts[-1].__dict__["serps"] = serps
    if not parts:
        file.close()
        return None
    serps = np.concatenate([part.serps for part in parts])
    seen = [query for part in parts for query in part.queries]
    # frequent queries first, of equally frequent ones the smaller id, as in patterns_of
    ids = np.array([q.query_id for q in seen])
    regions = np.array([-1 if q.region_id is None else q.region_id for q in seen])
    order = np.lexsort((regions, ids, -serps))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))

    L = np.concatenate([np.diff(part.offsets) for part in parts])
    offsets = np.concatenate([[0], np.cumsum(L[order])])
    item_ids = np.empty(offsets[-1], dtype=np.int64)
    numbers, first = [], 0
    for part in parts:
        mine = rank[first : first + part.Q]
        first += part.Q
        local = np.arange(part.I) - part.offsets[part.item_query]
        pairs = offsets[mine][part.item_query] + local
        item_ids[pairs] = part.item_ids
        numbers.append((mine, np.append(pairs, -1)))  # -1, beyond the end of a list, stays -1
    return StoredPatterns([seen[i] for i in order], item_ids, offsets, (P, K), numbers, file)


def _whole_queries(statistics: Path, holdout: bool, size: int) -> Iterator[pa.Table]:
    """Rows of at least ``size`` patterns, or the rest, that end with a query."""
    waiting: list[pa.Table] = []
    rows = 0
    for batch in pq.ParquetFile(statistics).iter_batches(batch_size=size):
        table = pa.Table.from_batches([batch]).select(CLICK_STATISTICS.names).cast(CLICK_STATISTICS)
        kept = table.filter(pa.compute.equal(table["holdout"], holdout))
        waiting.append(kept)
        rows += kept.num_rows
        if rows < size:
            continue
        together = pa.concat_tables(waiting)
        end = _start_of_last_query(together)
        if end:
            yield together.slice(0, end)
        waiting = [together.slice(end)]
        rows = together.num_rows - end
    if rows:
        yield pa.concat_tables(waiting)


def _start_of_last_query(table: pa.Table) -> int:
    """The row where the last query begins."""
    changed = np.zeros(table.num_rows, dtype=np.bool_)
    for name in ("query_id", "region_id"):
        values = table[name].fill_null(np.iinfo(np.int64).min).to_numpy()
        changed[1:] |= values[1:] != values[:-1]
    return int(np.flatnonzero(changed).max(initial=0))
