"""table: a row per page, with lists of items and clicks; CSV, TSV, Parquet, Arrow, NDJSON, frames.

Needed are a query, items and clicks; what else is missing is filled: every row is a session of its
own, time 0, no user, no day, no region, not a test. As text a list is written with blanks between
its values, or in brackets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from logeval.log.columns.frame import Frame
from logeval.log.columns.opening import open_table
from logeval.log.formats.format import Format, Job, Read, Reading
from logeval.log.layouts import recognised
from logeval.log.reading.source import Source
from logeval.log.rows.pages import write_pages
from logeval.log.rows.reader import read_tables

PAGES = {"queries": "result pages", "rejected": "rejected (rejects.tsv)"}


@dataclass(frozen=True, kw_only=True)
class Table(Format):
    """Rows per page."""

    columns: bool = True
    together: bool = True
    accounts: ClassVar[Mapping[str, str]] = PAGES

    def likeness(self, source: Source | Frame, columns: Mapping[str, str]) -> float:
        """Less than a log whose lines are mostly valid."""
        layout = recognised(source, columns)
        return 0.5 if layout is not None and layout.kind == "pages" else 0.0

    def read(self, reading: Reading) -> Iterator[Job | Read]:
        """All files together, for ids are numbered through."""
        return read_tables(reading, list(map(open_table, reading.sources)), "pages")


FORMAT = Table(name="table", writer=write_pages)
