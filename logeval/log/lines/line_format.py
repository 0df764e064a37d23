"""A format of lines: one record each, in runs of lines that are sessions.

Its files are read as one stream of bytes, cut into blocks of whole sessions, and a block is what a
worker parses, so they need no end, and a cluster can share them out.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from logeval.log import rejects
from logeval.log.formats.format import LOG, Format, Job, Read, Reading
from logeval.log.lines import scan
from logeval.log.lines.blocks import session_blocks
from logeval.log.lines.fields import MAX_ITEMS, RECORD
from logeval.log.reading.source import Source
from logeval.log.tables.frame import Frame
from logeval.running.arrays import Bytes, Ints
from logeval.storage.schemas import SERPS

ACCOUNTS = {
    "metadata": "metadata",
    "queries": "queries (SERPs)",
    "clicks_matched": "clicks, first on a result",
    "clicks_repeat": "clicks, repeated",
    "clicks_orphan": "clicks, orphan",
    "rejected": "rejected (rejects.tsv)",
}


@dataclass(frozen=True, kw_only=True)
class LineFormat(Format):
    """A format by its parser of lines, a kernel as ``lines.fields`` describes it."""

    kind: ClassVar[str] = LOG
    unit: ClassVar[str] = "lines"
    accounts: Mapping[str, str] = field(default_factory=lambda: dict(ACCOUNTS))
    parse: Any
    domains: bool = False  # whether there is one beside every item
    shortest_query: bytes  # lines: what of them a block can hold, there is room for
    shortest_click: bytes

    @cached_property
    def kernels(self) -> scan.Kernels:
        """What is compiled for this format, when it is first needed."""
        return scan.line_kernels(self.parse)

    def likeness(self, source: Source | Frame, columns: Mapping[str, str]) -> float:
        """The share of the first lines that are valid, if it is over a half."""
        assert isinstance(source, Source)
        counts = Scanner(self).scan(np.frombuffer(bytearray(source.first_lines), np.uint8))
        share = 1 - counts[scan.N_REJECTED] / counts[scan.LINES]
        return float(share) if share > 0.5 else 0.0

    def read(self, reading: Reading) -> Iterator[Job]:
        """The blocks of a file."""
        (source,) = reading.sources
        assert isinstance(source, Source)
        blocks = session_blocks(source, self.kernels.ends, reading.block_size)
        if reading.most is not None:
            blocks = iter([_first_lines(source, reading.most)])
        return self.jobs(blocks, reading.positions)

    def jobs(self, blocks: Iterable[Bytes], positions: int = MAX_ITEMS) -> Iterator[Job]:
        """Parse each block, with a scanner for every thread; lists are cut at a position."""
        own = threading.local()

        def parsed(block: Bytes) -> tuple[pa.Table, Read]:
            if not hasattr(own, "scanner"):
                own.scanner = Scanner(self)
            counts = Counter(dict(zip(scan.COUNTS, own.scanner.scan(block).tolist(), strict=True)))
            bad = partial(rejects.rejects_of, own.scanner.rejects(), block)
            return own.scanner.table(), Read(counts, bad)

        jobs = (partial(parsed, block) for block in blocks)
        return (partial(_cut, job, positions) for job in jobs) if positions < MAX_ITEMS else jobs


def _first_lines(source: Source, most: int) -> Bytes:
    """A block of the first lines; the last session in it may go on."""
    lines = source.first_lines.split(b"\n")[:-1][:most]
    return np.frombuffer(bytearray(b"".join(line + b"\n" for line in lines)), np.uint8)


def _cut(job: Job, positions: int) -> tuple[pa.Table, Read]:
    """Lists cut at a position; a click beyond it is one on what is not shown."""
    table, read = job()
    whole = table["clicks"].combine_chunks()
    for i, one in enumerate(SERPS):
        if pa.types.is_list(one.type):
            lists = pc.list_slice(table[one.name], 0, positions).cast(one.type)
            table = table.set_column(i, one, lists)
    kept = table["clicks"].combine_chunks()
    before, after = (lists.flatten().to_numpy() for lists in (whole, kept))
    matched = int((before > 0).sum() - (after > 0).sum())
    dropped = int(before.sum() - after.sum())
    counts = read.counts.copy()
    counts["clicks_matched"] -= matched
    counts["clicks_repeat"] -= dropped - matched
    counts["clicks_orphan"] += dropped
    counts["rows_cut"] = len(before) - len(after)
    return table, replace(read, counts=counts)


class Scanner:
    """Parses blocks of whole sessions, one after the other, into the same memory.

    What it has of a block is valid until the next one: fresh memory for every block would cost as
    much time as the parsing.
    """

    def __init__(self, format: LineFormat) -> None:
        self._format = format
        self._size = -1
        self._rec = np.empty(1, RECORD)[0]

    def scan(self, buf: Bytes) -> Ints:
        """Parse a block that ends with a newline; what is in it, by the places of COUNTS."""
        if len(buf) > self._size:
            self._allocate(len(buf) + len(buf) // 4)
        self._counts = np.zeros(len(scan.COUNTS), np.int64)
        self._format.kernels.scan(
            buf, self._rec, self._serps, self._items, self._domains, self._clicks,
            self._click_times, self._late, self._rejects, self._counts,
        )  # fmt: skip
        return self._counts

    def _allocate(self, size: int) -> None:
        """Room for whatever ``size`` bytes can hold; what is not used takes no memory."""
        self._size = size
        queries = size // len(self._format.shortest_query) + 1
        clicks = size // len(self._format.shortest_click) + 1
        room = size // 2 + MAX_ITEMS + 1  # a list that turns out too long is written, then rejected
        # item arrays are flat: SERP s has those from serps[S_ITEMS, s] to serps[S_ITEMS, s + 1]
        self._serps = np.empty((9, queries + 1), np.int64)
        self._items, self._domains, self._click_times = np.empty((3, room), np.int64)
        self._clicks = np.empty(room, np.int32)
        self._late = np.empty((3, clicks), np.int64)
        self._rejects = np.empty((4, size + 1), np.int32)

    def rejects(self) -> Ints:
        """(4, m): line in the block from 0, start, end and reason of what is no record."""
        return self._rejects[:, : self._counts[scan.N_REJECTED]].copy()

    def table(self) -> pa.Table:
        """The SERPs of the block; what the log does not have is null."""
        n = self._counts[scan.N_QUERIES]
        serps, m = self._serps[:, :n], self._serps[scan.S_ITEMS, n]
        offsets = pa.array(self._serps[scan.S_ITEMS, : n + 1].astype(np.int32))
        lists = partial(pa.ListArray.from_arrays, offsets)
        domains = pa.nulls(n, pa.list_(pa.int64()))
        if self._format.domains:
            domains = lists(pa.array(self._domains[:m]))
        columns = [
            *(_array(serps[i], SERPS.field(i).nullable) for i in range(scan.S_TEST)),
            pa.array(serps[scan.S_TEST] > 0),
            lists(pa.array(self._items[:m])),
            domains,
            lists(pa.array(self._clicks[:m])),
            lists(_array(self._click_times[:m], nullable=True)),
            pa.nulls(n, pa.list_(pa.float64())),  # propensities: no raw format has them
            pa.nulls(n, pa.bool_()),  # nor does one say which lists were in random order
            pa.nulls(n, pa.list_(pa.float64())),  # nor what was bought
            pa.nulls(n, pa.int32()),  # lists begin at the first rank
        ]
        return pa.Table.from_arrays(columns, schema=SERPS)


def _array(values: Ints, nullable: bool) -> pa.Array:
    """As an Arrow array; where it may be null, -1 is."""
    return pa.array(values, mask=values < 0 if nullable else None)
