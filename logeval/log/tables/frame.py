"""A data frame in memory (pandas, polars, Arrow) as a log: what ``ingest`` has of a file, too."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from logeval.errors import LogevalError
from logeval.log.reading.source import Source
from logeval.log.tables.files import (
    ARROW,
    BATCH_ROWS,
    DAMAGED,
    PARQUET,
    SAMPLE,
    STREAM,
    ArrowTable,
    Batch,
    ParquetTable,
    TableFile,
    batch_of,
    column,
    leaves,
    one_array,
    plain,
    readable,
)
from logeval.log.tables.text import CsvTable, JsonLines
from logeval.storage.tables import Manifest


def open_table(source: Source | Frame) -> TableFile:
    """The source as a file of columns, by its first bytes; opened once."""
    if isinstance(source, Frame):
        return source
    if source.table is None:
        start = source.head.lstrip()
        for magic, what in OTHERS.items():
            if start.startswith(magic):
                raise LogevalError(f"{source.name}: is {what}")
        kinds = [kind for magic, kind in KINDS.items() if start.startswith(magic)]
        with readable(source.name):
            source.table = (kinds or [CsvTable])[0](source)
    table: TableFile = source.table
    return table


KINDS: dict[bytes, Callable[[Source], TableFile]] = {
    PARQUET: ParquetTable,
    ARROW: ArrowTable,
    STREAM: ArrowTable,
    b"{": JsonLines,
    b"[": JsonLines,
}
OTHERS = {  # what people give besides, and what it is
    b"PK": "an Excel workbook or a zip archive; save its table as CSV",
    b"BZh": "compressed with bzip2; unpack it, or compress it as .gz or .zst",
    b"\xfd7zXZ": "compressed with xz; unpack it, or compress it as .gz or .zst",
    b"7z\xbc\xaf": "a 7z archive; unpack it",
    b"SQLite format 3": "a database; write its table as CSV or Parquet",
    b"\xff\xfe": "UTF-16; convert it, as with iconv -f utf-16 -t utf-8",
    b"\xfe\xff": "UTF-16; convert it, as with iconv -f utf-16 -t utf-8",
}


def is_frame(given: Any) -> bool:
    """Whether it is a data frame: what offers its columns to Arrow, as pandas and polars do."""
    return hasattr(given, "__arrow_c_stream__")


class Frame(TableFile):
    """The columns of a frame; those that nobody wants are not looked at."""

    compression = None
    head = b"frame"  # of a file: it is not empty

    def __init__(self, given: Any, on_read: Callable[[float], None] = lambda n: None) -> None:
        self.given, self.advance = given, on_read
        self.name = f"{type(given).__module__.partition('.')[0]} {type(given).__name__}"
        self.path = Path(self.name)
        self._columns: dict[str, pa.Array] = {}
        if _is_pandas(given):  # column by column: what is in them may be anything
            if odd := [name for name in given.columns if not isinstance(name, str)]:
                raise LogevalError(f"{self.name}: {odd[0]!r} is no name for a column; give it one")
            self.names = list(given.columns)
        else:
            with readable(self.name):
                self.given = pa.table(given)
            self.names = leaves(self.given.schema)

    def _column(self, name: str) -> pa.Array:
        if name not in self._columns:
            pandas = _is_pandas(self.given)
            self._columns[name] = (_of_pandas if pandas else column)(
                *([self.given[name]] if pandas else [self.given, name])
            )
        return self._columns[name]

    def _sample(self) -> pa.Table:
        if not _is_pandas(self.given):
            first = self.given.slice(0, SAMPLE)
            return pa.table(dict(batch_of(first, self.names).columns))
        first = self.given.head(SAMPLE)
        return pa.table({name: plain(_of_pandas(first[name])) for name in self.names})

    def _batches(self, wanted: Sequence[str]) -> Iterator[Callable[[], Batch]]:
        columns = {name: self._column(name) for name in wanted if name in self.names}
        for start in range(0, len(self.given), BATCH_ROWS):
            n = min(BATCH_ROWS, len(self.given) - start)
            rows = {name: array.slice(start, n) for name, array in columns.items()}
            yield partial(batch_of, pa.table(rows), list(rows))
            self.advance(n)

    def identity(self, columns: Iterable[str] | None = None) -> Manifest:
        """Rows and checksum of some columns; by default of those that were read."""
        names = sorted(self._columns if columns is None else columns)
        sha256 = hashlib.sha256()
        for name in names:
            sink = pa.BufferOutputStream()
            table = pa.table({name: self._column(name)})
            with pa.ipc.new_stream(sink, table.schema) as stream:
                stream.write_table(table)
            sha256.update(sink.getvalue())
        rows = len(self.given)
        return {"name": self.name, "rows": rows, "columns": names, "sha256": sha256.hexdigest()}

    def close(self) -> None:
        """The frame is the user's."""


def _is_pandas(given: Any) -> bool:
    return hasattr(given, "iloc")


def _of_pandas(values: Any) -> pa.Array:
    """A column of pandas; one of several types becomes text."""
    try:
        return one_array(pa.array(values, from_pandas=True))
    except (*DAMAGED, OverflowError):
        return as_array([None if _is_missing(value) else value for value in values])


def _is_missing(value: Any) -> bool:
    return value is None or bool(value != value)


def as_array(values: Sequence[Any]) -> pa.Array:
    """Values of several types as text."""
    if any(isinstance(value, list | tuple) for value in values):
        return pa.array([None if v is None else _texts(v) for v in values], pa.list_(pa.string()))
    return pa.array([_text(value) for value in values], pa.string())


def _texts(value: Any) -> list[str | None]:
    return [_text(one) for one in value] if isinstance(value, list | tuple) else [_text(value)]


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, bool | list | dict) else str(value)
