"""CSV and TSV: text, one row per record, the names of the columns first; compressed or not.

The text is cut into blocks of whole records, which Arrow parses: it can read from a Python file by
itself, but in a thread that outlives an error, and if the interpreter ends meanwhile, it aborts.
Every column is read as text; a record that has too few or too many fields, or is not UTF-8, is
rejected.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from logeval.errors import LogevalError, visible
from logeval.log.columns.blocks import end_of_records, record_blocks
from logeval.log.columns.table_file import SAMPLE, Batch, TableFile, one_array
from logeval.log.reading.source import BYTE_ORDER_MARK, Source
from logeval.log.rejects import EXCERPT, Reject

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
