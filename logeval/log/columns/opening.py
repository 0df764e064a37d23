"""Which kind of file of columns a source is, by its first bytes."""

from __future__ import annotations

from collections.abc import Callable

from logeval.log.columns.arrow_file import ARROW, PARQUET, STREAM, ArrowTable, ParquetTable
from logeval.log.columns.csv_file import CsvTable
from logeval.log.columns.frame import Frame
from logeval.log.columns.json_lines import JsonLines
from logeval.log.columns.table_file import TableFile, readable
from logeval.log.reading.source import Source

KINDS: dict[bytes, Callable[[Source], TableFile]] = {
    PARQUET: ParquetTable,
    ARROW: ArrowTable,
    STREAM: ArrowTable,
    b"{": JsonLines,
    b"[": JsonLines,
}


def open_table(source: Source | Frame) -> TableFile:
    """The source as a file of columns, opened once."""
    if isinstance(source, Frame):
        return source
    if source.table is None:
        start = source.head.lstrip()
        kinds = [kind for magic, kind in KINDS.items() if start.startswith(magic)]
        with readable(source.name):
            source.table = (kinds or [CsvTable])[0](source)
    table: TableFile = source.table
    return table
