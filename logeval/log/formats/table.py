"""table: SERPs that are already a Parquet or CSV file in the SERP schema, checked cell by cell.

Needed are query_id, items and clicks; what else is missing is filled: every row is a session
of its own, time 0, no user, no day, no region, not a test. In text the lists are numbers
separated by blanks, a missing click time is ``-``.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from logeval.errors import LogevalError, printable, unknown_names
from logeval.log.formats.format import Format, Job, Read, Reading
from logeval.log.lines.fields import MAX_ITEMS
from logeval.log.reading.columns import read_columns
from logeval.log.reading.source import Source
from logeval.storage.schemas import SERPS

NEEDED = ("query_id", "items", "clicks")


class Table(Format):
    """A file that is a table already."""

    def likeness(self, source: Source) -> float:
        """All of it for Parquet; for CSV less than a log whose lines are mostly valid."""
        if source.head.startswith(b"PAR1"):
            return 1.0
        first = source.first_lines.split(b"\n", 1)[0].decode(errors="backslashreplace")
        return 0.5 if set(first.replace('"', "").split(",")) & set(SERPS.names) else 0.0

    def read(self, reading: Reading) -> Iterator[Job]:
        """The batches of a file, checked in their order.

        Sessions are numbered from ``reading.rows`` where the file has none.
        """
        if unknown := [name for name in reading.columns if name not in SERPS.names]:
            raise unknown_names("column in the column map", unknown, SERPS.names)
        (source,) = reading.sources
        row = 0
        for batch in read_columns(source):
            table = _Batch(source.name, batch, row, reading.columns, reading.rows).table()
            row += table.num_rows
            yield partial(_counted, table)
        if not row:
            raise LogevalError(f"{source.name}: has no rows; there is nothing to ingest")


def _counted(table: pa.Table) -> tuple[pa.Table, Read]:
    clicks = table["clicks"].combine_chunks().flatten().to_numpy()
    counts = Counter(
        rows=table.num_rows,
        queries=table.num_rows,
        test_queries=int(table["test"].to_numpy().sum()),
        clicks_matched=int((clicks > 0).sum()),
        clicks_repeat=int((clicks - (clicks > 0)).sum()),
    )
    return table, Read(counts)


@dataclass(frozen=True)
class _Batch:
    """One batch on its way into the schema; ``first`` is the number of its first row."""

    file: str
    batch: pa.RecordBatch | pa.Table
    first: int
    columns: Mapping[str, str]
    first_session: int

    def table(self) -> pa.Table:
        """The batch in the schema; raises at the first cell that does not fit."""
        arrays = {field.name: self._column(field) for field in SERPS}
        lengths = pc.list_value_length(arrays["items"])
        outside = pc.or_(pc.less(lengths, 1), pc.greater(lengths, MAX_ITEMS))
        self._fail_at(outside, "items", f"number of items must be between 1 and {MAX_ITEMS}")
        for name in ("domains", "clicks", "click_times", "propensities"):
            other = pc.list_value_length(arrays[name])
            self._fail_at(pc.not_equal(other, lengths), name, "not one value per item")
        lists = arrays["clicks"]
        negative = pc.less(lists.flatten(), 0)
        self._fail_at(negative, "clicks", "number of clicks must be at least 0", lists)
        for field in SERPS:
            if pa.types.is_integer(field.type):
                self._fail_at(pc.less(arrays[field.name], 0), field.name, "is negative")
        timed = pc.is_valid(arrays["click_times"].flatten())
        unclicked = pc.equal(lists.flatten(), 0)
        self._fail_at(pc.and_(timed, unclicked), "click_times", "a time without a click", lists)
        p = arrays["propensities"].flatten()
        outside = pc.invert(pc.and_(pc.greater(p, 0.0), pc.less_equal(p, 1.0)))
        self._fail_at(
            outside, "propensities", "must be above 0 and at most 1", arrays["propensities"]
        )
        return pa.Table.from_arrays([arrays[name] for name in SERPS.names], schema=SERPS)

    def _column(self, field: pa.Field) -> pa.Array:
        source = self.columns.get(field.name, field.name)
        n = self.batch.num_rows
        if source not in self.batch.schema.names:
            if field.name in NEEDED or field.name in self.columns:
                raise LogevalError(
                    f"{self.file}: there is no column {source!r} (it has "
                    f"{printable(self.batch.schema.names)}); map yours to {field.name}"
                )
            return self._filled(field, n)
        values = self.batch.column(source)
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            values = self._from_text(field, values)
        try:
            values = values.cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            row = _first_not(field.type, values)
            self._fail(field.name, row, f"{values[row].as_py()!r} is not {field.type}")
        if not field.nullable:
            self._fail_at(pc.is_null(values), field.name, "is empty")
        if pa.types.is_list(field.type) and field.name != "click_times":
            holes = pc.is_null(values.flatten())
            self._fail_at(holes, field.name, "has an empty element", values)
        return values

    def _filled(self, field: pa.Field, n: int) -> pa.Array:
        if field.nullable:
            return pa.nulls(n, field.type)
        if field.name == "session_id":
            first = self.first_session + self.first
            return pa.array(range(first, first + n), field.type)
        if field.name == "click_times":
            items = self._column(SERPS.field("items"))
            return pa.ListArray.from_arrays(
                items.offsets, pa.nulls(items.offsets[-1].as_py(), pa.int64())
            )
        return pa.array([False if field.name == "test" else 0] * n, field.type)

    def _from_text(self, field: pa.Field, text: pa.Array) -> pa.Array:
        """Numbers, or lists of them, written as text; empty text is null."""
        text = pc.utf8_trim_whitespace(text.cast(pa.string()))
        text = pc.if_else(pc.equal(text, ""), None, text)
        if not pa.types.is_list(field.type):
            return text
        lists = pc.split_pattern_regex(text, r"\s+")
        values = lists.flatten()
        values = pc.if_else(pc.equal(values, "-"), None, values)
        offsets = lists.offsets
        mask = pc.is_null(lists) if lists.null_count else None
        try:
            numbers = values.cast(field.type.value_type)
        except pa.ArrowInvalid:
            row = pc.list_parent_indices(lists)[_first_not(field.type.value_type, values)].as_py()
            self._fail(field.name, row, "not a list of numbers")
        return pa.ListArray.from_arrays(offsets, numbers, mask=mask)

    def _fail_at(
        self, bad: pa.Array, name: str, reason: str, lists: pa.Array | None = None
    ) -> None:
        """Raise at the first row that is bad; with ``lists``, ``bad`` is over their elements."""
        place = pc.index(bad, True).as_py()
        if place < 0:
            return
        if lists is not None:
            place = pc.list_parent_indices(lists)[place].as_py()
        self._fail(name, place, reason)

    def _fail(self, name: str, row: int, reason: str) -> NoReturn:
        raise LogevalError(
            f"{self.file}: column {name!r}, row {self.first + row + 1}: {reason}; "
            "the schema is in docs/tables.md"
        )


def _first_not(kind: pa.DataType, values: pa.Array) -> int:
    """Where the first value is that is not of a type; there is one."""
    place = 0
    with contextlib.suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
        while place < len(values) - 1:
            values.slice(place, 1).cast(kind)
            place += 1
    return place


FORMAT = Table(name="table", columns=True)
