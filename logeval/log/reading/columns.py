"""Parquet and CSV files -> batches of columns as they are stored; those of CSV are text.

They hold what the source has hashed. CSV is cut into blocks of whole records, which Arrow parses:
it can read from a Python file by itself, but in a thread that outlives an error, and if the
interpreter ends meanwhile, it aborts.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from logeval.errors import LogevalError, one_line
from logeval.log.reading.source import Source

BATCH_ROWS = 1 << 16
DAMAGED = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)  # what Arrow says
BLOCK = 1 << 20
MAX_RECORD = 16 << 20
# as Arrow has it: a quote counts at the start of a value; a line ends with \n, \r\n or \r
VALUE = rb'(?:"(?:[^"]|"")*+"[^,\r\n]*+|(?!")[^,\r\n]*+)'
RECORD = re.compile(rb"%b(?:,%b)*+(?:\r\n?|\n)" % (VALUE, VALUE))


def read_columns(source: Source) -> Iterator[pa.RecordBatch | pa.Table]:
    """The batches of a file."""
    try:
        yield from (_parquet if source.head.startswith(b"PAR1") else _csv)(source)
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
        source.advance(size * batch.num_rows / parquet.metadata.num_rows)


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


def record_blocks(source: Source, size: int = BLOCK) -> Iterator[bytes]:
    """Text in blocks of about ``size`` bytes, of whole records; none has only empty lines."""
    rest = b""
    buffer = np.empty(size, np.uint8)
    while n := source.readinto(buffer):
        text = rest + buffer[:n].tobytes()
        end = _end_of_records(text) if n == size else len(text)
        if text[:end].strip(b"\r\n"):
            yield text[:end]
        rest = text[end:]
        if len(rest) > MAX_RECORD:
            raise LogevalError(
                f"{source.name}: a row of over {MAX_RECORD >> 20} MiB; is a quote never closed?"
            )
    if rest.strip(b"\r\n"):
        yield rest


def _end_of_records(text: bytes) -> int:
    """Where the last record that ends in the text, which begins with one, does."""
    if b'"' not in text:
        return max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
    end = 0
    while record := RECORD.match(text, end):
        end = record.end()
    return end
