"""Which kind of file of columns a source is, by its first bytes."""

from __future__ import annotations

from collections.abc import Callable

from logeval.errors import LogevalError
from logeval.log.columns.arrow_file import ARROW, PARQUET, STREAM, ArrowTable, ParquetTable
from logeval.log.columns.frame import Frame
from logeval.log.columns.table_file import TableFile, readable
from logeval.log.columns.text_files import CsvTable, JsonLines
from logeval.log.reading.source import Source

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


def open_table(source: Source | Frame) -> TableFile:
    """The source as a file of columns, opened once."""
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
