"""table: SERPs that are already a Parquet or CSV file in the SERP schema (``reading.conform``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa

from logeval.errors import LogevalError, unknown_names
from logeval.log.formats.format import Format, Job, Read, Reading
from logeval.log.reading.columns import read_columns
from logeval.log.reading.conform import Conformed
from logeval.log.reading.source import Source
from logeval.storage.schemas import SERPS


class Table(Format):
    """A file that is a table already."""

    def likeness(self, source: Source) -> float:
        """All of it for Parquet; for CSV less than a log whose lines are mostly valid."""
        if source.head.startswith(b"PAR1"):
            return 1.0
        first = source.first_lines.split(b"\n", 1)[0].decode(errors="backslashreplace")
        return 0.5 if set(first.replace('"', "").split(",")) & set(SERPS.names) else 0.0

    def read(self, reading: Reading) -> Iterator[Job]:
        """The batches of a file, checked in their order."""
        (source,) = reading.sources
        size, rows = source.path.stat().st_size, 0
        for table, share in read_batches(source.path, reading.columns, reading.rows):
            source.advance(share * size)
            rows += table.num_rows
            yield partial(_counted, table)
        if not rows:
            raise LogevalError(f"{source.path}: has no rows; there is nothing to ingest")


def read_batches(
    path: Path, columns: dict[str, str], first_session: int = 0
) -> Iterator[tuple[pa.Table, float]]:
    """The file in batches in the SERP schema, each with its share of the file.

    ``columns`` maps our names to the file's; sessions are numbered from ``first_session`` where
    the file has none.
    """
    unknown = [name for name in columns if name not in SERPS.names]
    if unknown:
        raise unknown_names("column in the column map", unknown, SERPS.names)
    row = 0
    for batch, share in read_columns(path):
        table = Conformed(path, batch, row, columns, first_session).table()
        row += table.num_rows
        yield table, share


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


FORMAT = Table(name="table", columns=True)
