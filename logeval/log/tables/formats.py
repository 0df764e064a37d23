"""Formats of tables: which columns they need, and what becomes of their rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from logeval.log.formats.format import Format, Job, Read, Reading
from logeval.log.reading.source import Source
from logeval.log.tables import counted, pages, text
from logeval.log.tables.frame import Frame, open_table
from logeval.log.tables.roles import Kind, column_names, recognised
from logeval.log.tables.written import write_pages


@dataclass(frozen=True, kw_only=True)
class TableFormat(Format):
    """Rows of a kind; a format of its own may know what its columns are called."""

    rows: Kind
    columns: bool = True
    together: bool = True  # a search may be in several files
    known: Mapping[str, str] = field(default_factory=dict)  # role -> column
    by_file: bool = False  # whether searches of two files are never the same

    def likeness(self, source: Source | Frame, columns: Mapping[str, str]) -> float:
        """Less than a log whose lines are mostly valid, and than a format that knows all names."""
        if self.known:
            there = set(self.known.values()) <= column_names(source)
            return 0.9 if there and not columns else 0.0
        layout = recognised(source, columns)
        return 0.5 if layout is not None and layout.kind == self.rows else 0.0

    def read(self, reading: Reading) -> Iterator[Job | Read]:
        """All files together."""
        tables = list(map(open_table, reading.sources))
        if self.rows == "counts":
            return counted.read_counts(reading, tables)
        if self.rows == "placements":
            return counted.read_placements(reading, tables)
        return pages.read_pages(reading, tables, self.rows, self.known or None, self.by_file)


@dataclass(frozen=True, kw_only=True)
class BaiduUltrRaw(TableFormat):
    """The sessions of Baidu-ULTR as Baidu published them; ``tables.text`` says what a line is."""

    rows: Kind = "results"
    columns: bool = False
    by_file: bool = True

    def likeness(self, source: Source | Frame, columns: Mapping[str, str]) -> float:
        """By the first lines."""
        return 0.9 if isinstance(source, Source) and text.looks_like(source.first_lines) else 0.0

    def read(self, reading: Reading) -> Iterator[Job | Read]:
        """All files together, for ids are numbered through."""
        tables = [text.BaiduSessions(s) for s in reading.sources if isinstance(s, Source)]
        return pages.read_pages(reading, list(tables), "results", self.known, by_file=True)


LONG = TableFormat(name="long", rows="results", accounts=pages.ACCOUNTS)
TABLE = TableFormat(
    name="table",
    rows="pages",
    accounts={"queries": "result pages", "rejected": "rejected (rejects.tsv)"},
    writer=write_pages,
)
COUNTS = TableFormat(name="counts", rows="counts", accounts=counted.ACCOUNTS, holds="counts")
PLACEMENTS = TableFormat(
    name="placements", rows="placements", accounts=counted.PLACED, holds="placements"
)
# Personalize Expedia Hotel Searches (ICDM 2013, Kaggle), train.csv: a row per hotel; the query is
# the destination. test.csv has neither positions nor clicks.
EXPEDIA = TableFormat(
    name="expedia",
    rows="results",
    accounts=pages.ACCOUNTS,
    known={
        "search": "srch_id",
        "time": "date_time",
        "query": "srch_destination_id",
        "item": "prop_id",
        "position": "position",
        "clicks": "click_bool",
        "random": "random_bool",
    },
)
# The public subset of Baidu-ULTR (2023) on the hub of Hugging Face, feather parts: a row per
# document. Queries are told apart by the MD5 of their text, documents by that of their URL.
BAIDU = TableFormat(
    name="baidu-ultr",
    rows="results",
    accounts=pages.ACCOUNTS,
    by_file=True,
    known={
        "search": "query_no",
        "query": "query_md5",
        "item": "url_md5",
        "position": "position",
        "clicks": "click",
    },
)
BAIDU_RAW = BaiduUltrRaw(
    name="baidu-ultr-raw",
    accounts={"heads": "lines of queries", **pages.ACCOUNTS},
    known={
        "search": "search",
        "query": "query",
        "item": "url_md5",
        "position": "position",
        "clicks": "click",
    },
)
