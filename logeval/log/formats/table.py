"""table: SERPs that are already a Parquet or CSV file in the SERP schema (``reading.conform``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

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
        """The batches of a file, checked in their order.

        Sessions are numbered from ``reading.rows`` where the file has none.
        """
        if unknown := [name for name in reading.columns if name not in SERPS.names]:
            raise unknown_names("column in the column map", unknown, SERPS.names)
        (source,) = reading.sources
        row = 0
        for batch in read_columns(source):
            table = Conformed(source.name, batch, row, reading.columns, reading.rows).table()
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


FORMAT = Table(name="table", columns=True)
