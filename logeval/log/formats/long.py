"""long: a row per result, in CSV, TSV, Parquet, Arrow, NDJSON or a data frame.

A row has a query, an item, its position and its clicks, and an id of the search, or a user and a
time; it may have more (``layouts.roles``). Rows of one search need not be neighbours. What columns
are called is recognised, or named by the user.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from logeval.log.columns.frame import Frame
from logeval.log.columns.opening import open_table
from logeval.log.formats.format import Format, Job, Read, Reading
from logeval.log.layouts import column_names, recognised
from logeval.log.reading.source import Source
from logeval.log.rows.pages import ACCOUNTS
from logeval.log.rows.reader import read_tables


@dataclass(frozen=True, kw_only=True)
class Long(Format):
    """Rows per result; one of its own may know what its columns are called."""

    columns: bool = True
    together: bool = True
    accounts: ClassVar[Mapping[str, str]] = ACCOUNTS
    known: Mapping[str, str] = field(default_factory=dict)  # role -> column
    by_file: bool = False  # whether searches of two files are never the same

    def likeness(self, source: Source | Frame, columns: Mapping[str, str]) -> float:
        """Less than a log whose lines are mostly valid, and than a format that knows all names."""
        if self.known:
            there = set(self.known.values()) <= column_names(source)
            return 0.9 if there and not columns else 0.0
        layout = recognised(source, columns)
        return 0.5 if layout is not None and layout.kind == "results" else 0.0

    def read(self, reading: Reading) -> Iterator[Job | Read]:
        """All files together: a search may be in several."""
        tables = list(map(open_table, reading.sources))
        return read_tables(reading, tables, "results", self.known or None, self.by_file)


FORMAT = Long(name="long")
