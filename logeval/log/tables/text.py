"""A stream of text -> blocks of whole records, in constant memory.

CSV and TSV: text, one row per record, the names of the columns first; compressed or not.

The text is cut into blocks of whole records, which Arrow parses: it can read from a Python file by
itself, but in a thread that outlives an error, and if the interpreter ends meanwhile, it aborts.
Every column is read as text; a record that has too few or too many fields, or is not UTF-8, is
rejected.

NDJSON: an object per line; compressed or not.

DuckDB takes the values at the paths that are wanted out of every line, as text. What elasticdump
and its like wrap in ``_source`` is taken out of it. Names with a point in them are as good as
nested ones.

The raw text of Baidu-ULTR as a table: a line per query, then one per document that it showed.

    Qid Query QueryReformulation
    Pos URL_MD5 Title Abstract MultimediaType Click ...

Fields are separated by TABs, tokens of texts by bytes 1. The line of a query has three fields at
most.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from logeval.errors import LogevalError, visible
from logeval.log.reading.source import BYTE_ORDER_MARK, HEAD, Source
from logeval.log.rejects import EXCERPT, Reject
from logeval.log.tables.files import SAMPLE, Batch, TableFile, one_array
from logeval.log.tables.values import scratch
from logeval.running.arrays import Bools
from logeval.running.kernels import njit_views

BLOCK = 4 << 20
MAX_RECORD = 16 << 20
MOST_LINES = 1000  # of a record
QUOTE, NEWLINE, RETURN = (ord(c) for c in '"\n\r')
VALUE_STARTS, IN_QUOTES, QUOTE_CLOSED, IN_VALUE = range(4)


def record_blocks(
    source: Source, delimiter: str | None, size: int | None = None, fields: int = 0
) -> Iterator[memoryview]:
    """Text in blocks of about ``size`` bytes, of whole records; none has only empty lines.

    Without a delimiter a record is a line. Else a quote that takes in lines which are records of so
    many ``fields`` themselves is an error: they would be lost.
    """
    size, rest, line = size or BLOCK, b"", 1
    while True:
        text = bytearray(len(rest) + size)
        text[: len(rest)] = rest
        n = source.readinto(np.frombuffer(text, np.uint8)[len(rest) :])
        whole = len(rest) + n
        end, torn, is_open = end_of_records(text, whole, delimiter, fields)
        torn = end if torn < 0 and is_open and n < size else torn
        if torn >= 0:
            place = line + text.count(b"\n", 0, torn)
            raise LogevalError(
                f"{source.name}, line {place}: a quote is opened and not closed, or only lines "
                "further down; if the file does not quote its values, "
                f"give logeval.ingest the frame pandas.read_csv({str(source.path)!r}, "
                f"sep={delimiter!r}, quoting=3), else double the quotes inside values"
            )
        end = end if n == size else whole
        rest = bytes(text[end:whole])
        line += text.count(b"\n", 0, end)
        if end and (text[0] not in b"\r\n" or text[:end].strip(b"\r\n")):
            yield memoryview(text)[:end]
        if n < size:
            return
        if len(rest) > MAX_RECORD:
            raise LogevalError(
                f"{source.name}: a row of over {MAX_RECORD >> 20} MiB; is a quote never closed?"
            )


def end_of_records(
    text: bytes | bytearray, size: int, delimiter: str | None, fields: int = 0
) -> tuple[int, int, bool]:
    """Where the last record that ends in the first bytes of a text, which begins with one, does.

    Further where a record begins that is none (-1), and whether a quote is open at the end.
    """
    if delimiter is None:
        return text.rfind(b"\n", 0, size) + 1, -1, False
    if text.find(b'"', 0, size) < 0:
        return max(text.rfind(b"\n", 0, size), text.rfind(b"\r", 0, size)) + 1, -1, False
    found: tuple[int, int, bool] = _end_of_records(
        np.frombuffer(text, np.uint8)[:size], np.uint8(ord(delimiter)), fields
    )
    return found


@njit_views
def _end_of_records(text, delimiter, fields):
    """As Arrow has it: a quote counts at the start of a value, and both ends of lines do.

    A record of several lines is none if each of them has all its delimiters, if there are very many
    of them, or if text follows the quote that ends its value.
    """
    state, end, lines, seen, every = VALUE_STARTS, 0, 0, 0, True
    for i in range(text.shape[0]):
        c = text[i]
        if c == NEWLINE or (c == RETURN and (i + 1 == text.shape[0] or text[i + 1] != NEWLINE)):
            lines, seen, every = lines + 1, 0, every and seen == fields - 1
            if lines > MOST_LINES or (lines > 1 and every and state != IN_QUOTES):
                return end, end, False
            if state != IN_QUOTES:
                lines, every = 0, True
        elif c == delimiter:
            seen += 1
        elif state == QUOTE_CLOSED and lines and c not in (QUOTE, RETURN):
            return end, end, False
        if state == IN_QUOTES:
            if c == QUOTE:
                state = QUOTE_CLOSED
        elif c == QUOTE and state in (VALUE_STARTS, QUOTE_CLOSED):
            state = IN_QUOTES
        elif c in (NEWLINE, RETURN):
            state, end = VALUE_STARTS, i + 1
        elif c == delimiter:
            state = VALUE_STARTS
        else:
            state = IN_VALUE
    return end, -1, state == IN_QUOTES


ESCAPED = re.compile("[\udc80-\udcff]")  # what is left of a byte that is not UTF-8
MARK = "\ufdd0"  # no character, for those
DELIMITERS = ",\t;|"  # of those that are most in the first record, the first


class CsvTable(TableFile):
    """A file of text with the names of its columns in the first record."""

    typed = False

    def __init__(self, source: Source) -> None:
        self.name, self._source = source.name, source
        head = source.head.decode(errors="replace")
        first = _first_record(head)
        self.delimiter = max(DELIMITERS, key=lambda d: len(_fields(first, d)))
        self.names = _fields(first, self.delimiter)
        if any("\ufffd" in name for name in self.names):
            raise LogevalError(
                f"{self.name}: not recognised: its first line is not UTF-8; convert it"
            )

    def _sample(self) -> pa.Table:
        head = self._source.head
        end = end_of_records(head, len(head), self.delimiter)[0] or len(head)
        batch = self._parse(memoryview(head)[:end], self.names, True)
        return pa.table(dict(batch.columns)).slice(0, SAMPLE)

    def _batches(self, wanted: Sequence[str]) -> Iterator[Callable[[], Batch]]:
        there = [name for name in self.names if name in wanted]
        first = True
        for block in record_blocks(self._source, self.delimiter, fields=len(self.names)):
            yield partial(self._parse, block, there, first)
            first = False

    def _parse(self, block: memoryview, wanted: Sequence[str], with_names: bool) -> Batch:
        rejects: list[Reject] = []
        if _is_utf8(block):
            table = self._table(block, wanted, with_names, rejects)
            columns = {name: one_array(table[name]) for name in wanted}
            return Batch(columns, table.num_rows + len(rejects), rejects)
        text = bytes(block).decode(errors="surrogateescape")
        marked = ESCAPED.sub(MARK, text).encode()
        table = self._table(memoryview(marked), wanted, with_names, rejects)
        return _without_marked(table, wanted, rejects)

    def _table(
        self,
        block: memoryview,
        wanted: Sequence[str],
        with_names: bool,
        rejects: list[Reject],
    ) -> pa.Table:
        def reject(row: pacsv.InvalidRow) -> str:
            reason = f"{row.actual_columns} fields, not {row.expected_columns}"
            text = "" if row.text is None else visible(row.text[:EXCERPT])
            rejects.append(Reject(row.number - 1 - with_names, reason, text))
            return "skip"

        read = pacsv.ReadOptions(
            use_threads=False,
            block_size=len(block) + 2,
            column_names=[] if with_names else self.names,
        )
        parse = pacsv.ParseOptions(
            delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=reject
        )
        convert = pacsv.ConvertOptions(
            include_columns=list(wanted) or self.names[:1],  # to count the rows
            column_types=dict.fromkeys(self.names, pa.string()),
            check_utf8=False,
            strings_can_be_null=False,
            null_values=[],
        )
        # Arrow drops a mark at the start, which may be of a value; it passes over empty lines
        text = b"\n" + bytes(block) if block[:3] == BYTE_ORDER_MARK else block
        return pacsv.read_csv(pa.BufferReader(text), read, parse, convert)


def _is_utf8(block: memoryview) -> bool:
    """Whether a block is; Arrow looks at it faster than Python."""
    offsets = pa.py_buffer(np.array([0, len(block)], np.int32))
    text = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(block)])
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _without_marked(table: pa.Table, wanted: Sequence[str], rejects: list[Reject]) -> Batch:
    """The rows of a block in which bytes that are not UTF-8 were marked, without those."""
    rows = table.num_rows + len(rejects)
    numbers = np.delete(np.arange(rows), [reject.line for reject in rejects])
    good = np.ones(table.num_rows, np.bool_)
    for name in wanted:
        bad = pc.match_substring(one_array(table[name]), MARK).to_numpy(False)
        for place in np.flatnonzero(bad & good):
            text = visible(table[name][place].as_py()[:EXCERPT].replace(MARK, "\ufffd"))
            rejects.append(Reject(int(numbers[place]), "not UTF-8", text))
        good &= ~bad
    kept = table.filter(pa.array(good))
    rejects.sort(key=lambda reject: reject.line)
    return Batch({name: one_array(kept[name]) for name in wanted}, rows, rejects)


def _first_record(head: str) -> str:
    """The first record that is not empty; Arrow passes over empty lines, too."""
    rows = csv.reader(io.StringIO(head.lstrip("\r\n"), newline=""))
    with io.StringIO(head.lstrip("\r\n"), newline="") as text:
        next(rows, None)
        return "".join(line for _, line in zip(range(rows.line_num), text, strict=False))


def _fields(record: str, delimiter: str) -> list[str]:
    return next(csv.reader(io.StringIO(record, newline=""), delimiter=delimiter), [])


class JsonLines(TableFile):
    """A file of objects, whose values are text; what ``_source`` wraps, and inner ones by path."""

    typed = False

    def __init__(self, source: Source) -> None:
        self.name, self._source = source.name, source
        self.complete = len(source.head) < HEAD - 3  # and a byte order mark
        lines = source.first_lines.splitlines()[:SAMPLE]
        found = [each for each in map(_object, lines) if each]
        if not found:
            raise LogevalError(
                f"{self.name}: begins as JSON, but its first line is not an object; "
                "write one object per line (NDJSON)"
            )
        paths = dict.fromkeys(path for each in found for path in _paths(each))
        self.names = [path for path in paths if "\0" not in path]

    def _sample(self) -> pa.Table:
        wanted = self.names
        batch = self._parse(self._source.first_lines, wanted)
        return pa.table(dict(batch.columns)).slice(0, SAMPLE)

    def _batches(self, wanted: Sequence[str]) -> Iterator[Callable[[], Batch]]:
        for block in record_blocks(self._source, None):
            yield partial(self._parse, block, wanted)

    def _parse(self, block: memoryview | bytes, wanted: Sequence[str]) -> Batch:
        lines = [line for line in bytes(block).split(b"\n") if line.strip()]
        texts = [_decoded(line) for line in lines]
        good, columns = json_columns(texts, wanted)
        rejects = [
            Reject(int(i), "not a JSON object", _excerpt(lines[i])) for i in np.flatnonzero(~good)
        ]
        return Batch(columns, len(lines), rejects)


def json_columns(
    lines: Sequence[str | None], wanted: Sequence[str]
) -> tuple[Bools, dict[str, pa.Array]]:
    """Which lines are objects, and of these the values at some paths, as text."""
    ways = []
    for name in wanted:
        parts = name.split(".")
        keys = ["".join(f'."{part}"' for part in parts), f'."{name}"']
        ways += [f"${before}{key}" for before in ("", '."_source"') for key in dict.fromkeys(keys)]
    listed = ", ".join("'" + way.replace("'", "''") + "'" for way in ways) or "'$.none'"
    n, picks = 0, []
    for i, name in enumerate(wanted):
        several = 4 if "." in name else 2
        picked = ", ".join(f"v[{n + k + 1}]" for k in range(several))
        picks.append(f"coalesce({picked}) AS c{i}")
        n += several
    chosen = ", ".join(["ok", *picks])
    with scratch() as db:
        db.register("lines", pa.table({"line": pa.array(lines, pa.string())}))
        found = db.sql(
            f"""SELECT {chosen} FROM (SELECT coalesce(ok, false) AS ok,
                CASE WHEN ok THEN json_extract_string(line, [{listed}]) END AS v
                FROM (SELECT line, CASE WHEN json_valid(line) THEN json_type(line) = 'OBJECT' END
                      AS ok FROM lines))"""
        ).to_arrow_table()
    good = one_array(found["ok"]).to_numpy(zero_copy_only=False)
    kept = found.filter(pa.array(good))
    return good, {name: one_array(kept[f"c{i}"]) for i, name in enumerate(wanted)}


def _decoded(line: bytes) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return None


def _excerpt(line: bytes) -> str:
    return visible(line[:EXCERPT].decode(errors="backslashreplace"))


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _paths(found: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """The names of an object's values, those of inner ones by their path."""
    for name, value in found.items():
        if isinstance(value, Mapping) and value:
            yield from _paths(value, "" if not path and name == "_source" else f"{path}{name}.")
        else:
            yield path + name


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
