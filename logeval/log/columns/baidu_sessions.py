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


class _NoRecord(Exception):
    """Why a line is none."""


def _parse(block: bytes, start: int) -> Batch:
    documents: list[tuple[str, ...]] = []
    numbers: list[int] = []
    rejects: list[Reject] = []
    search: tuple[str, str] | None = None  # where it begins, and its query
    heads = 0
    lines = block.removesuffix(b"\n").split(b"\n")
    for number, line in enumerate(lines):
        fields = line.split(b"\t", DOCUMENT_FIELDS)
        try:
            if len(fields) <= QUERY_FIELDS:
                search = None
                search = str(start), _query(fields)
                heads += 1
            elif search is None:
                raise _NoRecord("a document without a query")
            else:
                documents.append((*search, *_document(fields)))
                numbers.append(number)
        except (_NoRecord, UnicodeDecodeError) as error:
            reason = "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
            text = visible(line[:EXCERPT].decode(errors="backslashreplace"))
            rejects.append(Reject(number, reason, text))
        start += len(line) + 1
    columns = zip(*documents, strict=True) if documents else [[] for _ in NAMES]
    arrays = {n: pa.array(c, pa.string()) for n, c in zip(NAMES, columns, strict=True)}
    return Batch(arrays, len(lines), rejects, np.array(numbers, np.int64), heads)


def _query(fields: list[bytes]) -> str:
    """The tokens of a query."""
    text = " ".join(fields[1].decode().split("\1")).strip() if len(fields) > 1 else ""
    if not text:
        raise _NoRecord("a query without text")
    return text


def _document(fields: list[bytes]) -> tuple[str, str, str]:
    """MD5 of the URL, position and click."""
    if len(fields) < DOCUMENT_FIELDS:
        raise _NoRecord(f"{len(fields)} fields")
    return fields[1].decode(), fields[0].decode(), fields[5].decode()
