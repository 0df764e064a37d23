"""Rows on their way to pages, on disk: all of them in their order, and the runs that they form.

In most logs a search is one run; then the rows are in order already. What belongs to a search
stands once per run, what belongs to a result once per row.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from logeval.log.rows.conversion import Rows
from logeval.log.rows.numbering import Numbering
from logeval.running.arrays import Floats, Ints

NOTHING = np.empty(0, np.int64)


class Spill:
    """Rows and runs, in two files of ``folder``, and what of all rows must be known."""

    def __init__(self, folder: Path, numbering: Numbering) -> None:
        self.folder, self._numbering = folder, numbering
        folder.mkdir()
        self.rows = 0
        self.repeated = 0  # searches that were there before, whole; known once pages are made
        self.first_position: int | None = None
        self.first_day: int | None = None  # since 1970, if days are dates
        self.first_time: int | None = None  # likewise
        self._writers: dict[str, pq.ParquetWriter] = {}

    @property
    def run_file(self) -> Path:
        """One row per run."""
        return self.folder / "runs.parquet"

    @property
    def row_file(self) -> Path:
        """One row per row."""
        return self.folder / "rows.parquet"

    def add(self, rows: Rows) -> None:
        """Keep the next rows."""
        if len(rows):
            found = self._numbering.of(rows)
            self._write(self.run_file, found.runs)
            self._write(self.row_file, found.rows)
            self.rows += len(rows)
            days = rows.of_search.get("day", NOTHING) if rows.dates else NOTHING
            times = rows.of_search.get("time", NOTHING) if rows.clock else NOTHING
            self.first_position = _least(self.first_position, rows.position)
            self.first_day = _least(self.first_day, days)
            self.first_time = _least(self.first_time, times)

    def _write(self, file: Path, columns: dict[str, Ints | Floats]) -> None:
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        if file.name not in self._writers:
            self._writers[file.name] = pq.ParquetWriter(
                file,
                table.schema,
                compression="none",
                use_dictionary=False,
                write_statistics=False,
            )
        self._writers[file.name].write_table(table)

    def close(self) -> None:
        """Nothing more is coming."""
        for writer in self._writers.values():
            writer.close()
        self._writers = {}


def _least(known: int | None, values: Ints) -> int | None:
    """The least of what is known and of those values that are there."""
    there = values[values >= 0]
    if not len(there):
        return known
    return int(there.min()) if known is None else min(known, int(there.min()))
