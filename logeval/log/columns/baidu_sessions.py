"""The raw text of Baidu-ULTR as a table: a line per query, then one per document that it showed.

    Qid Query QueryReformulation
    Pos URL_MD5 Title Abstract MultimediaType Click ...

Fields are separated by TABs, tokens of texts by bytes 1. The line of a query has three fields at
most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

import numpy as np
import pyarrow as pa

from logeval.errors import visible
from logeval.log.columns.blocks import BLOCK, MAX_RECORD
from logeval.log.columns.table_file import Batch, TableFile
from logeval.log.reading.source import Source
from logeval.log.rejects import EXCERPT, Reject

NAMES = ("search", "query", "url_md5", "position", "click")
QUERY_FIELDS = 3  # at most
DOCUMENT_FIELDS = 6  # at least: as far as the click


def looks_like(lines: bytes) -> bool:
    """Whether the first lines are of this kind: a query, and then documents with their MD5."""
    first, *others = [line.split(b"\t") for line in islice(lines.split(b"\n"), 3)]
    if not 1 < len(first) <= QUERY_FIELDS or not others:
        return False
    second = others[0]
    return len(second) > 20 and second[0].isdigit() and len(second[1]) == 32


class BaiduSessions(TableFile):
    """A file of sessions; the number of a search is where it begins in the file."""

    typed = False

    def __init__(self, source: Source) -> None:
        self.name, self._source, self.names = source.name, source, list(NAMES)

    def _sample(self) -> pa.Table:
        batch = _parse(self._source.first_lines, 0)
        return pa.table(dict(batch.columns))

    def _batches(self, wanted: Sequence[str]) -> Iterator[Callable[[], Batch]]:
        for start, block in _session_blocks(self._source):
            yield partial(_parse, block, start)


def _session_blocks(source: Source) -> Iterator[tuple[int, bytes]]:
    """Blocks that begin with a query, and where they begin."""
    start, rest = 0, b""
    while True:
        buffer = np.empty(BLOCK, np.uint8)
        n = source.readinto(buffer)
        text = rest + buffer[:n].tobytes()
        end = _last_query(text) if n == BLOCK else len(text)
        if not end and len(text) > MAX_RECORD:
            end = text.rfind(b"\n") + 1 or len(text)
        if end:
            yield start, text[:end]
        start, rest = start + end, text[end:]
        if n < BLOCK:
            return


def _last_query(text: bytes) -> int:
    """Where the last line of a query begins; 0 if none does after the first line."""
    end = text.rfind(b"\n") + 1
    while end:
        start = text.rfind(b"\n", 0, end - 1) + 1
        if text.count(b"\t", start, end) < QUERY_FIELDS:
            return start
        end = start
    return 0


def _parse(block: bytes, start: int) -> Batch:
    columns: tuple[list[str], ...] = ([], [], [], [], [])
    search, query, heads = "", "", 0
    rejects: list[Reject] = []
    numbers: list[int] = []
    lines = block.split(b"\n")
    if not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines):
        fields = line.split(b"\t", DOCUMENT_FIELDS)
        reason = ""
        try:
            if len(fields) <= QUERY_FIELDS:
                heads += 1
                search, query = str(start), " ".join(fields[1].decode().split("\1")).strip()
            elif len(fields) < DOCUMENT_FIELDS:
                reason = f"{len(fields)} fields"
            elif not search:
                reason = "a document before any query"
            else:
                found = (search, query, fields[1].decode(), fields[0].decode(), fields[5].decode())
                for column, value in zip(columns, found, strict=True):
                    column.append(value)
                numbers.append(number)
        except UnicodeDecodeError:
            reason = "not UTF-8"
        except IndexError:
            heads, search, reason = heads - 1, "", "a query without text"
        if reason:
            text = visible(line[:EXCERPT].decode(errors="backslashreplace"))
            rejects.append(Reject(number, reason, text))
        start += len(line) + 1
    arrays = [pa.array(column, pa.string()) for column in columns]
    return Batch(
        dict(zip(NAMES, arrays, strict=True)), len(lines), rejects, np.array(numbers, int), heads
    )
