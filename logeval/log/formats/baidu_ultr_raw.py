"""baidu-ultr-raw: the sessions of Baidu-ULTR as Baidu published them, part-00000.gz and its like.

``columns.baidu_sessions`` says what a line is. Queries are told apart by their tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from logeval.log.columns.frame import Frame
from logeval.log.columns.table_file import TableFile
from logeval.log.columns.text_files import BaiduSessions, looks_like
from logeval.log.formats.format import Format, Job, Read, Reading
from logeval.log.reading.source import Source
from logeval.log.rows.pages import ACCOUNTS
from logeval.log.rows.reader import read_tables

KNOWN = {
    "search": "search",
    "query": "query",
    "item": "url_md5",
    "position": "position",
    "clicks": "click",
}


@dataclass(frozen=True, kw_only=True)
class BaiduUltrRaw(Format):
    """Lines of queries and of documents."""

    together: bool = True
    accounts: ClassVar[Mapping[str, str]] = {"heads": "lines of queries", **ACCOUNTS}

    def likeness(self, source: Source | Frame, columns: Mapping[str, str]) -> float:
        """By the first lines."""
        return 0.9 if isinstance(source, Source) and looks_like(source.first_lines) else 0.0

    def read(self, reading: Reading) -> Iterator[Job | Read]:
        """All files together, for ids are numbered through."""
        tables: list[TableFile] = []
        for source in reading.sources:
            assert isinstance(source, Source)
            tables.append(BaiduSessions(source))
        return read_tables(reading, tables, "results", KNOWN, by_file=True)


FORMAT = BaiduUltrRaw(name="baidu-ultr-raw")
