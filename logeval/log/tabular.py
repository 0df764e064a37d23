"""``table``: SERPs that are already a Parquet or CSV file in the SERP schema.

Needed are query_id, items and clicks; what else is missing is filled: every row is a session
of its own, time 0, no user, no day, no region, not a test. In CSV the lists are numbers
separated by blanks, a missing click time is ``-``.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from logeval.errors import LogevalError, one_line, printable, unknown_names
from logeval.log.fields import MAX_ITEMS
from logeval.log.records import record_blocks
from logeval.log.source import Source
from logeval.storage.tables import SERPS

NEEDED = ("query_id", "items", "clicks")
BATCH_ROWS = 1 << 16
DAMAGED = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)  # what Arrow says


def read_batches(
    source: Source, columns: dict[str, str], first_session: int = 0
) -> Iterator[pa.Table]:
    """The file in batches in the SERP schema; what they hold is what ``source`` has hashed.

    ``columns`` maps our names to the file's; sessions are numbered from ``first_session`` where
    the file has none.
    """
    unknown = [name for name in columns if name not in SERPS.names]
    if unknown:
        raise unknown_names("column in the column map", unknown, SERPS.names)
    row = 0
    for batch in _raw_batches(source):
        table = _Batch(source.name, batch, row, columns, first_session).table()
        row += table.num_rows
        yield table


def _raw_batches(source: Source) -> Iterator[pa.RecordBatch | pa.Table]:
    try:
        yield from (_parquet if source.peek(4) == b"PAR1" else _csv)(source)
    except (OSError, UnicodeDecodeError, *DAMAGED) as error:
        raise LogevalError(
            f"{source.name}: cannot be read as Parquet or CSV ({one_line(error)})"
        ) from None


def _parquet(source: Source) -> Iterator[pa.RecordBatch]:
    file = source.in_any_order()
    size = file.tell()
    parquet = pq.ParquetFile(file)
    _check_names(source.name, parquet.schema_arrow.names)
    for batch in parquet.iter_batches(BATCH_ROWS):
        yield batch
        source.on_read(size * batch.num_rows // parquet.metadata.num_rows)


def _csv(source: Source) -> Iterator[pa.Table]:
    blocks = record_blocks(source)
    first = next(blocks, b"")
    head = first[: 1 << 16].decode("utf-8-sig", "replace")
    rows = csv.reader(io.StringIO(head, newline=""))
    header = next(filter(None, rows), [])  # Arrow passes over empty lines too
    if any("\ufffd" in name for name in header):
        raise LogevalError(f"{source.name}: the names of its columns are not UTF-8")
    _check_names(source.name, header)
    convert = pacsv.ConvertOptions(column_types=dict.fromkeys(header, pa.string()))
    parse = pacsv.ParseOptions(newlines_in_values=True)
    names: list[str] = []  # of the columns, once they are known
    for block in chain([first], blocks):
        read = pacsv.ReadOptions(block_size=len(block) + 1, column_names=names)
        table = pacsv.read_csv(pa.BufferReader(block), read, parse, convert)
        names = table.column_names
        yield table


def _check_names(file: str, names: list[str]) -> None:
    if twice := [name for name in names if names.count(name) > 1]:
        raise LogevalError(f"{file}: has two columns {twice[0]!r}; rename one of them")


class _Batch:
    """One batch on its way into the schema; ``first`` is the number of its first row."""

    def __init__(
        self,
        file: str,
        batch: pa.RecordBatch | pa.Table,
        first: int,
        columns: dict[str, str],
        first_session: int,
    ) -> None:
        self.file, self.batch, self.first, self.columns = file, batch, first, columns
        self.first_session = first_session

    def table(self) -> pa.Table:
        arrays = {field.name: self._column(field) for field in SERPS}
        items = arrays["items"]
        self._check(pc.list_value_length(items), "items", 1, MAX_ITEMS, "items")
        lengths = pc.list_value_length(items)
        for name in ("domains", "clicks", "click_times", "propensities"):
            other = pc.list_value_length(arrays[name])
            self._fail_at(pc.not_equal(other, lengths), name, "not one value per item")
        self._check(arrays["clicks"].flatten(), "clicks", 0, None, "clicks", arrays["clicks"])
        for field in SERPS:
            if pa.types.is_integer(field.type):
                self._fail_at(pc.less(arrays[field.name], 0), field.name, "is negative")
        timed = pc.is_valid(arrays["click_times"].flatten())
        unclicked = pc.equal(arrays["clicks"].flatten(), 0)
        self._fail_at(
            pc.and_(timed, unclicked), "click_times", "a time without a click", arrays["clicks"]
        )
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
            self._fail_at_first_bad(field, values)
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
            if pa.types.is_floating(field.type.value_type):
                bad = pa.array([_not_number(v) for v in values.to_pylist()])
            else:
                limit = 1 << (field.type.value_type.bit_width - 1)
                bad = pa.array([_not_integer(v, limit) for v in values.to_pylist()])
            self._fail_at(bad, field.name, "not a list of numbers", lists)
            raise
        return pa.ListArray.from_arrays(offsets, numbers, mask=mask)

    def _fail_at_first_bad(self, field: pa.Field, values: pa.Array) -> None:
        for i in range(len(values)):
            try:
                values.slice(i, 1).cast(field.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                self._fail(field.name, i, f"{values[i].as_py()!r} is not {field.type}")

    def _check(
        self,
        values: pa.Array,
        name: str,
        low: int,
        high: int | None,
        what: str,
        lists: pa.Array | None = None,
    ) -> None:
        bad = pc.less(values, low)
        if high is not None:
            bad = pc.or_(bad, pc.greater(values, high))
        limit = f"between {low} and {high}" if high is not None else f"at least {low}"
        self._fail_at(bad, name, f"number of {what} must be {limit}", lists)

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

    def _fail(self, name: str, row: int, reason: str) -> None:
        raise LogevalError(
            f"{self.file}: column {name!r}, row {self.first + row + 1}: {reason}; "
            "the schema is in docs/tables.md"
        )


def _not_integer(text: str | None, limit: int) -> bool:
    if text is None:
        return False
    return re.fullmatch(r"-?\d+", text, re.ASCII) is None or not -limit <= int(text) < limit


def _not_number(text: str | None) -> bool:
    try:
        float(text or 0)
    except ValueError:
        return True
    return False
