"""Rows of all files in a database of their own, within a memory limit and on disk beyond it.

Every value is read by SQL. A record with a value that cannot be used is rejected for the first
reason against it, all others go to ``rows``. Text ids get numbers in the order in which they come
first; a kind of ids whose values are all whole numbers, written as programs write them, keeps them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from logeval.errors import LogevalError, one_line, printable, visible
from logeval.log.formats.format import Read, Reading
from logeval.log.names import KINDS, file_of, shortened
from logeval.log.reading.parts import in_order
from logeval.log.rejects import EXCERPT, Reject
from logeval.log.tables.files import Batch, TableFile
from logeval.log.tables.roles import Kind, Layout, Map, check_complete, recognise
from logeval.log.tables.values import MACROS, literal, text_of
from logeval.storage import database
from logeval.storage.schemas import NAMES

MEMORY_LIMIT = "400MB"
NAMES_GROUP = 1 << 17
READING = 0.6  # of the time
Reason = tuple[str, str, str]  # a condition, the reason that it is against a record, what was wrong


class Staging:
    """The rows of a log on their way to a table."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.folder = reading.folder / ".rows"
        self.folder.mkdir()
        self.db = database.connect(
            {
                "memory_limit": MEMORY_LIMIT,
                "temp_directory": str(self.folder / "sorting"),
                "threads": reading.workers,
            }
        )
        self.db.execute(MACROS)
        self.db.execute("SET preserve_insertion_order = false")  # else sorting pins memory
        self.text: set[str] = set()  # kinds of ids that have names
        self._made = False
        self._before = self._file = 0  # rows and files that were read

    # -- reading ------------------------------------------------------------------------------

    def read(
        self,
        tables: Sequence[TableFile],
        wanted: Sequence[str],
        select: Callable[[Mapping[str, pa.DataType], int], str],
        into: str = "SELECT * EXCLUDE (line, reason, value) FROM staged WHERE reason IS NULL",
        check: Callable[[Batch], None] = lambda batch: None,
    ) -> Iterator[Read]:
        """All rows of all files, and what was counted of each file.

        ``select`` makes of the types of columns, and the number of the file, the query that reads
        the values of a batch; ``into`` says which rows are kept of them.
        """
        for table in tables:
            rows = 0
            for batch in in_order(table.batches(wanted), self.reading.workers):
                batch = batch if self.reading.most is None else batch.first(self.reading.most)
                check(batch)
                rejects = self._take(batch, rows, wanted, select, into)
                rows += batch.rows
                counts = Counter(rows=batch.rows, heads=batch.heads, rejected=len(rejects))
                yield Read(counts, partial(tuple, rejects), self._file)
                if self.reading.most is not None:
                    break
            if not rows:
                raise LogevalError(f"{table.name}: has no rows; there is nothing to ingest")
            self._before += rows
            self._file += 1

    def _take(
        self,
        batch: Batch,
        before: int,
        wanted: Sequence[str],
        select: Callable[[Mapping[str, pa.DataType], int], str],
        into: str,
    ) -> list[Reject]:
        """Read the values of a batch; ``before`` rows of its file are before it."""
        n = len(batch.numbers)
        none = pa.nulls(n, pa.string())
        arrays = [batch.columns.get(name, none) for name in wanted]
        kinds = {name: array.type for name, array in zip(wanted, arrays, strict=True)}
        names = [*(f"c{i}" for i in range(len(wanted))), "line"]
        self.db.register("batch", pa.table([*arrays, pa.array(batch.numbers)], names=names))
        self.db.execute(
            f"CREATE OR REPLACE TEMP TABLE staged AS SELECT line + {self._before + before} AS n, * "
            f"FROM ({select(kinds, self._file)})"
        )
        self.db.unregister("batch")
        made = "INSERT INTO rows BY NAME" if self._made else "CREATE TABLE rows AS"
        self.db.execute(f"{made} {into}")
        self._made = True
        bad = self.sql(
            f"SELECT line, reason, left(value, {EXCERPT}) FROM staged WHERE reason IS NOT NULL"
        )
        found = [Reject(line, reason, visible(value or "")) for line, reason, value in bad]
        return sorted([*batch.rejects, *found], key=lambda reject: reject.line)

    # -- asking -------------------------------------------------------------------------------

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        found: list[tuple[Any, ...]] = self.db.execute(query).fetchall()
        return found

    def roles(self) -> frozenset[str]:
        """The columns of rows."""
        return frozenset(row[0] for row in self.sql("DESCRIBE rows"))

    def number(self, text: Iterable[str], there: Iterable[str]) -> dict[str, str]:
        """Give numbers to the ids of all kinds; for each the SQL of its number in a join.

        ``text`` are the kinds that are text whatever they look like.
        """
        numbers = {}
        for kind in [kind for kind in KINDS if kind in there]:
            odd = f"SELECT 1 FROM rows WHERE {kind} IS NOT NULL AND exact({kind}) IS NULL LIMIT 1"
            if kind not in text and not self.sql(odd):
                numbers[kind] = f"{kind}::BIGINT"
                continue
            self.db.execute(
                f"CREATE TABLE names_{kind} AS SELECT name, row_number() OVER (ORDER BY n) - 1 "
                f"AS id FROM (SELECT {kind} AS name, min(n) AS n FROM rows "
                f"WHERE {kind} IS NOT NULL GROUP BY {kind})"
            )
            self.text.add(kind)
            self._write_names(kind)
            numbers[kind] = f"names_{kind}.id"
            if note := note_on_names(self.db, kind):
                self.reading.note(note)
        return numbers

    def joins(self, rows: str = "r") -> str:
        """The joins that the numbers of text ids need."""
        return " ".join(
            f"LEFT JOIN names_{kind} ON names_{kind}.name = {rows}.{kind}"
            for kind in sorted(self.text)
        )

    def _write_names(self, kind: str) -> None:
        path = file_of(self.reading.folder, kind)
        path.parent.mkdir(exist_ok=True)
        how: dict[str, Any] = {
            "compression": "zstd", "compression_level": 1, "use_dictionary": False,
        }  # fmt: skip
        found = self.db.sql(f"SELECT id, name FROM names_{kind} ORDER BY id")
        with pq.ParquetWriter(path, NAMES, **how) as writer:
            for batch in found.to_arrow_reader(NAMES_GROUP):
                writer.write_table(pa.Table.from_batches([batch]).cast(NAMES))

    def stream(self, query: str, rows: int) -> Iterator[pa.Table]:
        """The rows of a query, some at a time."""
        for batch in self.db.sql(query).to_arrow_reader(rows):
            if batch.num_rows:
                yield pa.Table.from_batches([batch])


@contextmanager
def staged(reading: Reading) -> Iterator[Staging]:
    """A staging place; what DuckDB cannot do is an error of ours."""
    staging = Staging(reading)
    try:
        yield staging
    except duckdb.OutOfMemoryException as error:
        raise LogevalError(
            f"{MEMORY_LIMIT} of memory are not enough to sort the rows ({one_line(error)}); "
            "sort the log by search first"
        ) from None
    except duckdb.IOException as error:
        raise LogevalError(
            f"the rows cannot be sorted ({one_line(error)}); check the space in {staging.folder}"
        ) from None
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    finally:
        staging.db.close()


def common_layout(
    tables: Iterable[TableFile],
    given: Map,
    kind: Kind,
    known: Map | None = None,
    apart: bool = False,
) -> Layout:
    """What the columns of the first file are taken for; the others must have the same ones."""
    first, *others = tables
    layout = check_complete(first, recognise(first, given, known, kind), apart)
    for other in others:
        if missing := [name for name in layout.wanted if name not in other.names]:
            raise LogevalError(
                f"{other.name}: has no column {missing[0]!r}, which {first.name} has; its columns "
                f"are {printable(other.names)}; ingest files with other columns one by one"
            )
    return layout


def text_kinds(tables: Iterable[TableFile], layout: Layout) -> set[str]:
    """The kinds of ids that are text as such in a file whose columns have types."""
    found = set()
    for table in tables:
        if not table.typed:
            continue
        schema = table.sample().schema
        for kind in [kind for kind in KINDS if kind in layout.columns]:
            type_ = schema.field(layout.columns[kind][0]).type
            type_ = type_.value_type if hasattr(type_, "value_type") else type_
            if pa.types.is_string(type_):
                found.add(kind)
    return found


def texts_of(layout: Layout, kinds: Mapping[str, pa.DataType]) -> dict[str, str]:
    """The columns of each role as text, in SQL; a search of several is one text."""
    place = {name: i for i, name in enumerate(layout.wanted)}

    def text(name: str) -> str:
        return text_of(f"c{place[name]}", kinds[name])

    found = {role: text(names[0]) for role, names in layout.columns.items()}
    search = layout.columns.get("search", ())
    if len(search) > 1:
        # lengths keep apart what would else be the same text
        parts = [f"coalesce({text(name)}, '')" for name in search]
        one = " || ".join(f"length({part}) || ':' || {part}" for part in parts)
        none = " AND ".join(f"{part} = ''" for part in parts)
        found["search"] = f"CASE WHEN NOT ({none}) THEN {one} END"
    return found


def first_reason(reasons: Sequence[Reason]) -> str:
    """The columns ``reason`` and ``value`` of a record, in SQL."""
    whys = " ".join(f"WHEN {bad} THEN {literal(reason)}" for bad, reason, _ in reasons)
    texts = " ".join(f"WHEN {bad} THEN {text}" for bad, _, text in reasons)
    return f"CASE {whys} END AS reason, CASE {texts} END AS value"


def page_cuts(pages: np.ndarray) -> np.ndarray:
    """Where a page begins, after the first."""
    cuts: np.ndarray = np.flatnonzero(pages[1:] != pages[:-1]) + 1
    return cuts


def note_on_names(db: duckdb.DuckDBPyConnection, kind: str) -> str | None:
    """What is to be said of the names of a kind: that some differ by nearly nothing."""
    alike = "lower(nfc_normalize(trim(name, ' ')))"
    ((groups, first),) = db.execute(
        f"SELECT count(*), min(first) FROM (SELECT min(id) AS first FROM names_{kind} "
        f"GROUP BY {alike} HAVING count(*) > 1)"
    ).fetchall()
    if not groups:
        return None
    two = db.execute(
        f"SELECT name FROM names_{kind} WHERE {alike} = (SELECT {alike} FROM names_{kind} "
        f"WHERE id = {first}) ORDER BY id LIMIT 2"
    ).fetchall()
    like = " and ".join(repr(shortened(name)) for (name,) in sorted(two))
    return (
        f"{groups:,} names of {kind} ids differ only by case, blanks or Unicode form, "
        f"as {like}; they are kept apart"
    )
