"""CSV and TSV: text, one row per record, the names of the columns first; compressed or not.

The text is cut into blocks of whole records, which Arrow parses: it can read from a Python file by
itself, but in a thread that outlives an error, and if the interpreter ends meanwhile, it aborts.
Every column is read as text; a record that has too few or too many fields, or is not UTF-8, is
rejected.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from logeval.errors import LogevalError, visible
from logeval.log.columns.blocks import end_of_records, record_blocks
from logeval.log.columns.table_file import SAMPLE, Batch, TableFile, one_array
from logeval.log.reading.source import Source
from logeval.log.rejects import EXCERPT, Reject

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
            raise LogevalError(f"{self.name}: the names of its columns are not UTF-8")

    def _sample(self) -> pa.Table:
        head = self._source.head
        end = end_of_records(head, len(head), self.delimiter) or len(head)
        batch = self._parse(memoryview(head)[:end], self.names, True)
        return pa.table(dict(batch.columns)).slice(0, SAMPLE)

    def _batches(self, wanted: Sequence[str]) -> Iterator[Callable[[], Batch]]:
        there = [name for name in self.names if name in wanted]
        first = True
        for block in record_blocks(self._source, self.delimiter):
            yield partial(self._parse, block, there, first)
            first = False

    def _parse(self, block: memoryview, wanted: Sequence[str], with_names: bool) -> Batch:
        rejects: list[Reject] = []
        try:
            table = self._table(block, wanted, with_names, pa.string(), rejects)
        except pa.ArrowInvalid:  # not UTF-8 somewhere
            rejects.clear()
            table = self._table(block, wanted, with_names, pa.binary(), rejects)
            return _decoded(table, rejects)
        columns = {name: one_array(table[name]) for name in wanted}
        return Batch(columns, table.num_rows + len(rejects), rejects)

    def _table(
        self,
        block: memoryview,
        wanted: Sequence[str],
        with_names: bool,
        kind: pa.DataType,
        rejects: list[Reject],
    ) -> pa.Table:
        def reject(row: pacsv.InvalidRow) -> str:
            reason = f"{row.actual_columns} fields, not {row.expected_columns}"
            text = "" if row.text is None else visible(row.text[:EXCERPT])
            rejects.append(Reject(row.number - 1 - with_names, reason, text))
            return "skip"

        read = pacsv.ReadOptions(
            use_threads=False,
            block_size=len(block) + 1,
            column_names=[] if with_names else self.names,
        )
        parse = pacsv.ParseOptions(
            delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=reject
        )
        convert = pacsv.ConvertOptions(
            include_columns=list(wanted) or self.names[:1],  # to count the rows
            column_types=dict.fromkeys(self.names, kind),
            strings_can_be_null=False,
            null_values=[],
        )
        return pacsv.read_csv(pa.BufferReader(block), read, parse, convert)


def _decoded(table: pa.Table, rejects: list[Reject]) -> Batch:
    """A block that holds bytes which are not UTF-8, without the rows that have them."""
    numbers = np.delete(np.arange(table.num_rows + len(rejects)), [r.line for r in rejects])
    columns = {name: one_array(table[name]).to_pylist() for name in table.column_names}
    bad = set()
    for values in columns.values():
        for row, value in enumerate(values):
            try:
                value.decode()
            except UnicodeDecodeError:
                bad.add(row)
                text = visible(value[:EXCERPT].decode(errors="backslashreplace"))
                found = Reject(int(numbers[row]), "not UTF-8", text)
                if found.line not in {reject.line for reject in rejects}:
                    rejects.append(found)
    kept = [row for row in range(table.num_rows) if row not in bad]
    texts = {
        name: pa.array([values[row].decode() for row in kept], pa.string())
        for name, values in columns.items()
    }
    rejects.sort(key=lambda reject: reject.line)
    return Batch(texts, len(kept) + len(rejects), rejects)


def _first_record(head: str) -> str:
    """The first record that is not empty; Arrow passes over empty lines, too."""
    rows = csv.reader(io.StringIO(head.lstrip("\r\n"), newline=""))
    with io.StringIO(head.lstrip("\r\n"), newline="") as text:
        next(rows, None)
        return "".join(line for _, line in zip(range(rows.line_num), text, strict=False))


def _fields(record: str, delimiter: str) -> list[str]:
    return next(csv.reader(io.StringIO(record, newline=""), delimiter=delimiter), [])
