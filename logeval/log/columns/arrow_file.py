"""Parquet and Arrow (feather) files, read in any order once they were hashed whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from logeval.log.columns.table_file import (
    BATCH_ROWS,
    SAMPLE,
    Batch,
    TableFile,
    batch_of,
    leaves,
)
from logeval.log.reading.source import Source

PARQUET, ARROW, STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"


class ParquetTable(TableFile):
    """A Parquet file."""

    def __init__(self, source: Source) -> None:
        self.name, self._source = source.name, source
        schema = pq.read_schema(source.as_stored())
        self.names = leaves(schema)

    def _sample(self) -> pa.Table:
        file = pq.ParquetFile(self._source.as_stored())
        first = next(row_batches(file, SAMPLE), None)
        return _flat(first if first is not None else file.schema_arrow.empty_table(), self.names)

    def _batches(self, wanted: Sequence[str]) -> Iterator[Callable[[], Batch]]:
        file = self._source.in_any_order()
        size = file.tell()
        parquet = pq.ParquetFile(file)
        there = [name for name in wanted if name in self.names]
        for batch in row_batches(parquet, BATCH_ROWS, there):
            yield partial(batch_of, batch, wanted)
            self._source.advance(size * batch.num_rows / parquet.metadata.num_rows)


def row_batches(
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
        schema = self._open(source.as_stored(), None)[0]
        self.names = leaves(schema)

    def _sample(self) -> pa.Table:
        schema, batches = self._open(self._source.as_stored(), None)
        first = next(batches, None)
        return _flat(first.slice(0, SAMPLE) if first else schema.empty_table(), self.names)

    def _batches(self, wanted: Sequence[str]) -> Iterator[Callable[[], Batch]]:
        file = self._source.in_any_order()
        size = file.tell()
        _, batches = self._open(file, [name.partition(".")[0] for name in wanted])
        for whole in batches:
            for start in range(0, whole.num_rows, BATCH_ROWS):
                yield partial(batch_of, whole.slice(start, BATCH_ROWS), wanted)
        self._source.advance(size)


def _open_file(
    file: IO[bytes], wanted: Sequence[str] | None
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    file.seek(0)
    reader = pa.ipc.open_file(file)
    if wanted is not None:
        places = [i for i, name in enumerate(reader.schema.names) if name in wanted]
        options = pa.ipc.IpcReadOptions(included_fields=places)
        file.seek(0)
        reader = pa.ipc.open_file(file, options=options)
    return reader.schema, map(reader.get_batch, range(reader.num_record_batches))


def _open_stream(
    file: IO[bytes], wanted: Sequence[str] | None
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    file.seek(0)
    reader = pa.ipc.open_stream(file)
    return reader.schema, iter(reader)


def _flat(table: pa.Table | pa.RecordBatch, names: Sequence[str]) -> pa.Table:
    return pa.table(dict(batch_of(table, names).columns))
