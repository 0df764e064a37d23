"""Files of rows and columns, whatever they are stored as, as batches of Arrow columns.

The column ``a.b`` of nested data is the field b of the column a. Parquet and Arrow (feather) files
are read in any order once they were hashed whole; ``tables.text`` reads files of text.
"""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from logeval.errors import LogevalError, one_line, printable
from logeval.log.reading.source import Source
from logeval.log.rejects import Reject
from logeval.running.arrays import Ints

SAMPLE = 1000  # rows by which columns are recognised
BATCH_ROWS = 1 << 17
PARQUET, ARROW, STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"
LISTS = [pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list]
if hasattr(pa.types, "is_list_view"):
    LISTS += [pa.types.is_list_view, pa.types.is_large_list_view]
DAMAGED = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)  # what Arrow says


@dataclass(frozen=True)
class Batch:
    """Rows of a file, as they are stored."""

    columns: Mapping[str, pa.Array]  # those that were wanted and are there
    rows: int  # of the file, with those that are rejected
    rejects: Sequence[Reject] = ()  # records that are no rows, numbered within the batch
    found: Ints | None = None  # which rows the columns hold, if not all others
    heads: int = 0  # rows that say something of those after them

    @property
    def numbers(self) -> Ints:
        """Which of the rows of the file the columns hold, from 0 within the batch."""
        if self.found is not None:
            return self.found
        return np.delete(np.arange(self.rows), [reject.line for reject in self.rejects])

    def first(self, n: int) -> Batch:
        """Its first rows alone."""
        kept = int((self.numbers < n).sum())
        columns = {name: array.slice(0, kept) for name, array in self.columns.items()}
        rejects = [reject for reject in self.rejects if reject.line < n]
        rows = min(n, self.rows)
        return Batch(columns, rows, rejects, self.numbers[:kept], rows - kept - len(rejects))


class TableFile(ABC):
    """A file of columns."""

    name: str  # for messages
    names: list[str]  # of its columns
    typed = True  # whether a number is another thing than its digits
    complete = True  # whether there are no other columns

    @cached_property
    def known(self) -> dict[Any, Any]:
        """What its columns were taken for, by the user's map."""
        return {}

    def sample(self) -> pa.Table:
        """The first rows, flat."""
        check_names(self.name, self.names)
        with readable(self.name):
            return self._sample()

    def batches(self, wanted: Sequence[str]) -> Iterator[Callable[[], Batch]]:
        """All rows in their order; what is called may be called elsewhere, in any order."""
        with readable(self.name):
            for read in self._batches(wanted):
                yield partial(self._read, read)

    def _read(self, read: Callable[[], Batch]) -> Batch:
        with readable(self.name):
            return read()

    @abstractmethod
    def _sample(self) -> pa.Table: ...

    @abstractmethod
    def _batches(self, wanted: Sequence[str]) -> Iterator[Callable[[], Batch]]: ...


class ParquetTable(TableFile):
    """A Parquet file."""

    def __init__(self, source: Source) -> None:
        self.name, self._source = source.name, source
        self.names = leaves(pq.read_schema(source.as_stored()))

    def _sample(self) -> pa.Table:
        file = pq.ParquetFile(self._source.as_stored())
        first = next(_row_batches(file, SAMPLE), None)
        return flat(first if first is not None else file.schema_arrow.empty_table(), self.names)

    def _batches(self, wanted: Sequence[str]) -> Iterator[Callable[[], Batch]]:
        file = self._source.in_any_order()
        size = file.tell()
        parquet = pq.ParquetFile(file)
        there = [name for name in wanted if name in self.names]
        for batch in _row_batches(parquet, BATCH_ROWS, there):
            yield partial(batch_of, batch, wanted)
            self._source.advance(size * batch.num_rows / parquet.metadata.num_rows)


def _row_batches(
    file: pq.ParquetFile, rows: int, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a file, one row group after the other: ``iter_batches`` alone reads ahead all."""
    for group in range(file.num_row_groups):
        yield from file.iter_batches(rows, row_groups=[group], columns=columns)


class ArrowTable(TableFile):
    """An Arrow file, which feather files are, or a stream, as the hub of Hugging Face stores it."""

    def __init__(self, source: Source) -> None:
        self.name, self._source = source.name, source
        self._open = _open_file if source.head.startswith(ARROW) else _open_stream
        self.names = leaves(self._open(source.as_stored())[0])

    def _sample(self) -> pa.Table:
        schema, batches = self._open(self._source.as_stored())
        first = next(batches, None)
        return flat(first.slice(0, SAMPLE) if first else schema.empty_table(), self.names)

    def _batches(self, wanted: Sequence[str]) -> Iterator[Callable[[], Batch]]:
        file = self._source.in_any_order()
        size = file.tell()
        for whole in self._open(file)[1]:
            for start in range(0, whole.num_rows, BATCH_ROWS):
                yield partial(batch_of, whole.slice(start, BATCH_ROWS), wanted)
        self._source.advance(size)


def _open_file(file: IO[bytes]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    file.seek(0)
    reader = pa.ipc.open_file(file)
    return reader.schema, map(reader.get_batch, range(reader.num_record_batches))


def _open_stream(file: IO[bytes]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    file.seek(0)
    reader = pa.ipc.open_stream(file)
    return reader.schema, iter(reader)


@contextmanager
def readable(name: str) -> Iterator[None]:
    """What libraries say of a file that they cannot read is an error of ours."""
    try:
        yield
    except (OSError, UnicodeDecodeError, csv.Error, *DAMAGED) as error:
        raise LogevalError(f"{name}: cannot be read as a table ({one_line(error)})") from None


def check_names(file: str, names: Iterable[str]) -> None:
    """Raise for two columns of the same name; SQL does not tell them apart by case."""
    names = list(names)
    if twice := [name for name in names if names.count(name) > 1]:
        if twice[0].strip().isdigit():
            raise LogevalError(
                f"{file}: its first line is {printable(names[:10])}, which are no names of "
                "columns; put these there, as search_id, query, item, position, clicks"
            )
        raise LogevalError(f"{file}: has two columns {twice[0]!r}; rename one of them")


def leaves(schema: pa.Schema) -> list[str]:
    """The names of all columns, nested ones by their path."""

    def below(field: pa.Field, path: str) -> Iterator[str]:
        if pa.types.is_struct(field.type) and field.type.num_fields:
            for inner in field.type:
                yield from below(inner, f"{path}.{inner.name}")
        else:
            yield path

    return [leaf for field in schema for leaf in below(field, field.name)]


def column(table: pa.Table | pa.RecordBatch, path: str) -> pa.Array | None:
    """A column, or the field of one, as one array; None if there is none."""
    names = table.schema.names
    parts = path.split(".")
    for n in range(len(parts), 0, -1):
        name = ".".join(parts[:n])
        if name in names:
            return _field(one_array(table.column(name)), parts[n:])
    return None


def _field(array: pa.Array, path: Sequence[str]) -> pa.Array | None:
    for name in path:
        if not pa.types.is_struct(array.type) or array.type.get_field_index(name) < 0:
            return None
        array = pc.struct_field(array, name)  # a null within a null is one
    return array


def one_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    if not isinstance(values, pa.ChunkedArray):
        return values
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


def batch_of(table: pa.Table | pa.RecordBatch, wanted: Sequence[str]) -> Batch:
    """The wanted columns of rows that are all good."""
    found = {name: column(table, name) for name in wanted}
    return Batch({name: plain(a) for name, a in found.items() if a is not None}, table.num_rows)


def flat(table: pa.Table | pa.RecordBatch, names: Sequence[str]) -> pa.Table:
    """A table whose nested columns are columns of their own."""
    return pa.table(dict(batch_of(table, names).columns))


def plain(array: pa.Array) -> pa.Array:
    """A column in the common one of several types, of which SQL knows all."""
    kind = _plain_type(array.type)
    return array if kind == array.type else array.cast(kind)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if is_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_null(kind):
        return pa.string()
    return kind


def is_list(kind: pa.DataType) -> bool:
    """Whether it is a type of lists."""
    return any(is_one(kind) for is_one in LISTS)
