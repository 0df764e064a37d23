"""Rows on disk -> pages: chunks of whole searches, in the order in which they first came.

Where every search is one run, the rows are read as they are. Else DuckDB sorts them, within a
memory limit and on disk beyond it: the page of a search is its first run that names a query; a
later run with another query, user or region contradicts it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from logeval.errors import LogevalError, one_line
from logeval.log.columns.arrow_file import row_batches
from logeval.log.rows.conversion import OF_SEARCH, Spill
from logeval.running.arrays import Floats, Ints
from logeval.storage import database

CHUNK_ROWS = 1 << 18  # pages of ten results: 25,000
MOST_ROWS = 1 << 20  # of one search
MEMORY_LIMIT = "300MB"
LOST = -1  # the page of rows whose search is nowhere


@dataclass(frozen=True)
class Chunk:
    """Pages, and their rows by position; ``fate`` is 1 for those that contradict their search."""

    pages: dict[str, Ints]
    rows: dict[str, Ints | Floats]
    first: Ints  # rows of page p: first[p] to first[p + 1]


def chunks(spill: Spill, threads: int) -> Iterator[Chunk]:
    """All pages; a chunk of the page LOST comes first, if there are such rows."""
    if not spill.rows:
        return
    with _connection(spill, threads) as db:
        neighbours = _neighbours(db)
    if neighbours:
        of_rows, of_pages = _as_they_are(spill.row_file), _as_they_are(spill.run_file)
        yield from _cut(of_rows, _Pages(of_pages, spill))
        return
    with _connection(spill, threads) as db:
        of_rows, of_pages = _sorted(db, spill)
        yield from _cut(of_rows, _Pages(of_pages, spill))


@contextmanager
def _connection(spill: Spill, threads: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with the views ``runs`` and ``rows``."""
    folder = spill.folder
    settings: dict[str, Any] = {
        "memory_limit": MEMORY_LIMIT,
        "temp_directory": str(folder / "sorting"),
        "threads": threads,
        "preserve_insertion_order": False,
    }
    db = database.connect(settings)
    try:
        _views(db, spill)
        yield db
    except duckdb.OutOfMemoryException as error:
        raise LogevalError(
            f"{MEMORY_LIMIT} of memory are not enough to sort the rows ({one_line(error)}); "
            "sort the log by search first"
        ) from None
    except duckdb.IOException as error:
        raise LogevalError(
            f"the rows cannot be sorted ({one_line(error)}); check the space in {folder}"
        ) from None
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    finally:
        db.close()


def _views(db: duckdb.DuckDBPyConnection, spill: Spill) -> None:
    for name, file in (("runs", spill.run_file), ("rows", spill.row_file)):
        numbered = ", file_row_number = true" if name == "rows" else ""
        db.execute(f"CREATE VIEW {name} AS FROM read_parquet(['{_quoted(file)}']{numbered})")


def _quoted(file: Path) -> str:
    return str(file).replace("'", "''")


def _neighbours(db: duckdb.DuckDBPyConnection) -> bool:
    """Whether every search is one run, and names a query."""
    again = "SELECT 1 FROM runs GROUP BY hi, lo HAVING count(*) > 1 OR min(query) < 0 LIMIT 1"
    return db.execute(again).fetchone() is None


def _as_they_are(file: Path) -> Iterator[pa.Table]:
    for batch in row_batches(pq.ParquetFile(file), CHUNK_ROWS):
        yield _with_page(pa.Table.from_batches([batch]))


def _with_page(runs: pa.Table) -> pa.Table:
    """Runs that are pages."""
    return runs.rename_columns(["page" if n == "run" else n for n in runs.column_names])


def _sorted(
    db: duckdb.DuckDBPyConnection, spill: Spill
) -> tuple[Iterator[pa.Table], Iterator[pa.Table]]:
    """Rows and pages; step by step, each of which fits into the memory."""
    there = pq.read_schema(spill.run_file).names
    shared = [name for name in OF_SEARCH if name in there]
    firsts = ", ".join(f"arg_min({name}, run) FILTER (query >= 0) AS {name}" for name in shared)
    db.execute(
        f"""CREATE TABLE firsts AS
            SELECT hi, lo, min(run) FILTER (query >= 0) AS page, {firsts}
            FROM runs GROUP BY hi, lo"""
    )
    # what a run says and the page says otherwise; -1 says nothing
    contrary = " OR ".join(
        f"(r.{name} >= 0 AND f.{name} >= 0 AND r.{name} <> f.{name})" for name in shared
    )
    whole = "OR (r.whole > 0 AND r.run <> f.page)" if "whole" in there else ""
    if whole:
        again = "SELECT sum(whole > 0) - (SELECT count(page) FROM firsts) FROM runs"
        (spill.repeated,) = db.execute(again).fetchone() or (0,)
    places = _written(
        db,
        spill.folder / "places.parquet",
        f"""SELECT r.run, coalesce(f.page, {LOST}) AS page,
                coalesce({contrary} {whole}, false)::TINYINT AS fate
            FROM runs AS r JOIN firsts AS f ON r.hi = f.hi AND r.lo = f.lo""",
    )
    pages = _written(
        db,
        spill.folder / "pages.parquet",
        "SELECT * FROM runs SEMI JOIN firsts ON run = page ORDER BY run",
    )
    db.execute("DROP TABLE firsts")
    rows = db.sql(
        "SELECT page, fate, rows.* EXCLUDE (run, file_row_number) "
        f"FROM rows JOIN read_parquet(['{_quoted(places)}']) USING (run) "
        "ORDER BY page, position, rows.file_row_number"
    )
    return _streamed(rows), _as_they_are(pages)


def _written(db: duckdb.DuckDBPyConnection, file: Path, select: str) -> Path:
    db.execute(f"COPY ({select}) TO '{_quoted(file)}' (FORMAT parquet, COMPRESSION uncompressed)")
    return file


def _streamed(relation: duckdb.DuckDBPyRelation) -> Iterator[pa.Table]:
    for batch in relation.to_arrow_reader(CHUNK_ROWS):
        yield pa.Table.from_batches([batch])


class _Pages:
    """What is known of pages, given out in their order."""

    def __init__(self, tables: Iterator[pa.Table], spill: Spill) -> None:
        self._tables = tables
        self._held: pa.Table | None = next(tables, None)
        self._none = _with_page(pq.read_schema(spill.run_file).empty_table())

    def up_to(self, last: int) -> pa.Table:
        """The next pages, with page ``last``."""
        taken = []
        while self._held is not None:
            n = int(np.searchsorted(self._held["page"].to_numpy(), last, side="right"))
            taken.append(self._held.slice(0, n))
            if n < len(self._held):
                self._held = self._held.slice(n)
                break
            self._held = next(self._tables, None)
        return pa.concat_tables(taken) if taken else self._none


def _cut(tables: Iterator[pa.Table], pages: _Pages) -> Iterator[Chunk]:
    """Cut where a page ends."""
    held: pa.Table | None = None
    for table in _gathered(tables):
        held = table if held is None else pa.concat_tables([held, table])
        page = held["page"].to_numpy()
        # the last page may go on; rows that are of none need not wait for each other
        end = len(page) if page[-1] == LOST else int(np.searchsorted(page, page[-1]))
        if end:
            yield _chunk(held.slice(0, end), pages)
            held = held.slice(end)
        elif len(held) > MOST_ROWS:
            raise LogevalError(
                f"over {MOST_ROWS:,} rows are of one search; is its column the right one?"
            )
    if held is not None and len(held):
        yield _chunk(held, pages)


def _gathered(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Tables of about CHUNK_ROWS rows."""
    held: list[pa.Table] = []
    for table in tables:
        held.append(table)
        if sum(map(len, held)) >= CHUNK_ROWS:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


def _chunk(table: pa.Table, pages: _Pages) -> Chunk:
    page = table["page"].to_numpy()
    lost = int(np.searchsorted(page, LOST, side="right"))
    found = pages.up_to(int(page[-1]))
    first = np.searchsorted(page, found["page"].to_numpy())
    columns = {name: table[name].to_numpy() for name in table.column_names}
    return Chunk(
        {name: found[name].to_numpy() for name in found.column_names},
        columns,
        np.append(first, len(page)) if len(first) else np.array([lost]),
    )
