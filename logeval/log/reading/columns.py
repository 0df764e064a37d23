"""Parquet and CSV files -> batches of columns as they are stored; those of CSV are text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from logeval.errors import LogevalError, one_line
from logeval.log.reading.source import MAGIC

BATCH_ROWS = 1 << 16
DAMAGED = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)  # what Arrow says


def read_columns(path: Path) -> Iterator[tuple[pa.RecordBatch, float]]:
    """The batches of a file, each with its share of the file."""
    with open(path, "rb") as file:
        magic = file.read(4)
    try:
        if magic == b"PAR1":
            parquet = pq.ParquetFile(path)
            _check_names(path, parquet.schema_arrow.names)
            for batch in parquet.iter_batches(BATCH_ROWS):
                yield batch, batch.num_rows / parquet.metadata.num_rows
            return
        head = _csv_stream(path, magic)[1].read(1 << 16).decode("utf-8-sig", "replace")
        rows = csv.reader(io.StringIO(head, newline=""))
        header = next(filter(None, rows))  # Arrow passes over empty lines too
        if any("\ufffd" in name for name in header):
            raise LogevalError(f"{path}: the names of its columns are not UTF-8")
        _check_names(path, header)
        raw, stream = _csv_stream(path, magic)
        convert = pacsv.ConvertOptions(column_types=dict.fromkeys(header, pa.string()))
        parse = pacsv.ParseOptions(newlines_in_values=True)
        before = 0
        for batch in pacsv.open_csv(stream, convert_options=convert, parse_options=parse):
            yield batch, (raw.tell() - before) / max(raw.size(), 1)
            before = raw.tell()
    except (OSError, UnicodeDecodeError, StopIteration, *DAMAGED) as error:
        raise LogevalError(
            f"{path}: cannot be read as Parquet or CSV ({one_line(error)})"
        ) from None


def _check_names(path: Path, names: list[str]) -> None:
    if twice := [name for name in names if names.count(name) > 1]:
        raise LogevalError(f"{path}: has two columns {twice[0]!r}; rename one of them")


def _csv_stream(path: Path, magic: bytes) -> tuple[pa.NativeFile, pa.NativeFile]:
    """The file, and the file decompressed."""
    raw = pa.OSFile(str(path))
    codec = next((c for m, c in MAGIC.items() if magic.startswith(m)), None)
    return raw, pa.CompressedInputStream(raw, codec) if codec else raw
