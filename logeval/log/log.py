"""An ingested log: its folder, its manifest, and queries over its SERPs.

Queries run in DuckDB over the Parquet files, within a memory limit; what does not fit is
spilled to a temporary folder.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import pyarrow as pa

from logeval.errors import LogevalError, one_line, short, unknown_names
from logeval.log.names import Names
from logeval.log.queries import GivenQueries, sql_condition, sql_limit
from logeval.storage import database, files, schemas, tables

if TYPE_CHECKING:
    from logeval.log.describe import Description

MEMORY_LIMIT = "1200MB"
MAY_LACK = {
    "propensities": "NULL::DOUBLE[]",
    "random": "NULL::BOOLEAN",
    "rewards": "NULL::DOUBLE[]",
    "first": "NULL::INTEGER",
}


COUNTED_PLACEMENTS = """
    SELECT query_id, region_id, item_id, position, count(*) AS impressions,
        count(*) FILTER (clicks > 0) AS clicks
    FROM placements GROUP BY ALL"""


@dataclass(frozen=True)
class Log:
    """An ingested log; ``logeval.load(path)`` gives one."""

    path: Path
    manifest: tables.Manifest

    def __post_init__(self) -> None:
        object.__setattr__(self, "_opened", self._written())

    @property
    def counts(self) -> dict[str, int]:
        """What was read, kept and dropped when the log was ingested."""
        counts: dict[str, int] = self.manifest["counts"]
        return counts

    def cautions(self) -> list[str]:
        """What would make models of this log worthless, or looks like a mistake."""
        counts = Counter(self.counts)
        if self.holds == "counts":
            if not counts["clicks"]:
                return ["the table holds no clicks; a click model of it says nothing"]
            if counts["clicks_capped"] * 10 > counts["results"]:
                return [
                    "over a tenth of the rows have more clicks than impressions; is it the column?"
                ]
            return []
        if self.holds == "placements":
            return [] if counts["clicks"] else ["the log holds no clicks"]
        if not counts["queries"]:
            return ["the log holds no result pages; there is nothing to fit"]
        if counts["queries"] == counts["test_queries"]:
            return ["all result pages are test records, whose clicks are withheld"]
        if not counts["clicks_matched"]:
            return ["the log holds no clicks; a click model of it says nothing"]
        found = []
        if counts["clicks_matched"] == counts["results"]:
            found.append("every result was clicked; were only those logged that were?")
        if 1 < counts["queries"] == counts["results"]:
            found.append("every page has a single result; is the search the right column?")
        if counts["pages_later"]:
            found.append(
                f"{counts['pages_later']:,} pages begin at a later rank, which they keep; fits of "
                "click models leave them out"
            )
        if counts["pages_with_gaps"] * 2 > counts["queries"]:
            share = counts["pages_with_gaps"] / counts["queries"]
            found.append(
                f"{share:.0%} of the pages leave positions out; were some results not logged?"
            )
        odd = counts["rows_doubled"] + counts["rows_contrary"]
        if odd * 100 > counts["results"] > 0:
            found.append(
                f"{odd:,} rows have a position that another item of their search has, or another "
                "query; is the search the right column?"
            )
        return found

    @property
    def holds(self) -> str:
        """The table that it is: serps, or counts."""
        return str(self.manifest.get("holds", "serps"))

    @property
    def title(self) -> str:
        """Its folder; what it was made of, if that is gone with it."""
        if not self.manifest.get("temporary"):
            return str(self.path)
        return ", ".join(str(each.get("name")) for each in self.manifest["inputs"])

    @cached_property
    def names(self) -> Names:
        """The names of queries, items, users and domains, where the log had text for ids."""
        return Names(self.path, manifest=self.manifest)

    def __repr__(self) -> str:
        counts = self.manifest.get("counts", {})
        if self.holds == "counts":
            shown, clicked = (counts.get(name, 0) for name in ("impressions", "clicks"))
            return f"Log {self.title}: {shown:,} impressions, {clicked:,} clicks, counted"
        if self.holds == "placements":
            placed, clicked = (counts.get(name, 0) for name in ("placements", "clicked"))
            return f"Log {self.title}: {placed:,} single placements, {clicked:,} clicked"
        pages, clicks = (counts.get(name, 0) for name in ("queries", "clicks_matched"))
        return f"Log {self.title}: {pages:,} result pages, {clicks:,} clicked results"

    def _repr_html_(self) -> str:
        counts = self.manifest.get("counts", {})
        shown = {k: f"{v:,}" if isinstance(v, int) else str(v) for k, v in counts.items()}
        cells = [[html.escape(text) for text in row] for row in shown.items()]
        rows = "".join(f"<tr><td>{name}</td><td>{count}</td></tr>" for name, count in cells)
        return f"<p>Log {html.escape(self.title)}</p><table>{rows}</table>"

    @property
    def identity(self) -> str:
        """What was read here, as a checksum: of the manifest at hand, not of one written since."""
        return tables.identity_of(self.manifest)

    @cached_property
    def files(self) -> list[Path]:
        """The Parquet files of the SERPs, in the order of the log; checked when first asked for.

        Their names hold their checksums: a file of another log, put here after
        the check, has another name.
        """
        names = sorted(n for n in self.manifest["files"] if n.startswith(f"{self.holds}/"))
        with self._as_it_was():
            tables.check_files(self.path, self.manifest, names)
        return [self.path / name for name in names]

    @contextmanager
    def _as_it_was(self) -> Iterator[None]:
        """Errors of reading are put down to another log in the place of this one, if there is."""
        try:
            yield
        except (LogevalError, OSError):
            if self._is_there():
                raise
            raise LogevalError(
                f"{self.path}: another log took its place while it was read; run the command again"
            ) from None

    def _is_there(self) -> bool:
        """Whether nothing was written since; the same log may have been put here again."""
        try:
            same = tables.read_manifest(self.path) == self.manifest
        except LogevalError:
            return False
        return same and self._written() == getattr(self, "_opened", None)

    def _written(self) -> tuple[int, int] | None:
        """Which manifest is there: another one with the same words is another file."""
        try:
            found = (self.path / tables.MANIFEST).stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    @contextmanager
    def connect(
        self, names: Sequence[str] | None = None, holds: str = "serps"
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """A DuckDB connection with the view ``serps``; of some files only if they are named.

        What asks for SERPs is refused where the log ``holds`` counts, and the other way round;
        single placements can be counted.
        """
        if holds != self.holds and (holds, self.holds) != ("counts", "placements"):
            raise LogevalError(
                f"{self.title}: is a table of {self.holds}, and this needs {holds}; {self.holds} "
                "do not say which results were on a page together"
            )
        with files.scratch() as spill:
            settings: dict[str, Any] = {"memory_limit": MEMORY_LIMIT, "temp_directory": str(spill)}
            connection = database.connect(settings)
            try:
                connection.execute("SET preserve_insertion_order = false")
                chosen = self.files if names is None else [self.path / name for name in names]
                listed = ", ".join(_quoted(file) for file in chosen)
                source = (
                    f"read_parquet([{listed}], union_by_name = true, hive_partitioning = false)"
                )
                there = {row[0] for row in connection.sql(f"DESCRIBE FROM {source}").fetchall()}
                lacks = MAY_LACK if self.holds == "serps" else {}
                new = [f"{kind} AS {name}" for name, kind in lacks.items() if name not in there]
                select = ", ".join(["*", *new])
                connection.execute(f"CREATE VIEW {self.holds} AS SELECT {select} FROM {source}")
                if self.holds == "placements":
                    connection.execute(f"CREATE VIEW counts AS {COUNTED_PLACEMENTS}")
                yield connection
            except duckdb.OutOfMemoryException as error:
                raise LogevalError(
                    f"{self.path}: {MEMORY_LIMIT} of memory are not enough ({one_line(error)}); "
                    "ask for fewer queries"
                ) from None
            except duckdb.IOException as error:
                with self._as_it_was():
                    raise LogevalError(
                        f"{self.path}: cannot be read, or its results not written "
                        f"({one_line(error)}); check the disk and the space on it and in {spill}"
                    ) from None
            except duckdb.InterruptException:
                raise KeyboardInterrupt from None
            finally:
                connection.close()

    def serps(
        self,
        columns: str | Iterable[str] | None = None,
        queries: GivenQueries = None,
    ) -> pa.Table:
        """SERPs as an Arrow table (``.to_pandas()`` for pandas), in the order of the log."""
        columns = [columns] if isinstance(columns, str) else columns
        names = list(columns) if columns is not None else schemas.SERPS.names
        if not names:
            raise LogevalError(
                f"no column was asked for; there are {', '.join(schemas.SERPS.names)}"
            )
        if unknown := [name for name in names if name not in schemas.SERPS.names]:
            raise unknown_names("column", unknown, schemas.SERPS.names)
        where = "" if queries is None else f"WHERE {sql_condition(self.names.all_meant(queries))}"
        with self.connect() as connection:
            connection.execute("SET preserve_insertion_order = true")
            select = f"SELECT {', '.join(names)} FROM serps {where}"
            table = connection.sql(select).to_arrow_table()
        return table.cast(pa.schema([schemas.SERPS.field(name) for name in names]))

    def describe(self, top: int = 20) -> Description:
        """What the log holds: totals, CTR by rank, the most frequent queries."""
        from logeval.log.describe import describe, describe_counts

        return describe(self, top) if self.holds == "serps" else describe_counts(self, top)

    def top_queries(self, n: int = 20) -> pd.DataFrame:
        """The ``n`` most frequent queries, most frequent first, by SERPs (but test ones).

        By impressions, where the log holds counts.
        """
        often, of = "count(*) AS serps", "serps WHERE NOT test"
        if self.holds != "serps":
            often, of = "sum(impressions)::BIGINT AS impressions", "counts"
        with self.connect(holds="serps" if self.holds == "serps" else "counts") as connection:
            frame = connection.execute(
                "SELECT concat_ws('@', query_id, region_id) AS query, query_id, region_id, "
                f"{often} FROM {of} "
                f"GROUP BY query_id, region_id ORDER BY 4 DESC, query_id, region_id {sql_limit(n)}"
            ).df()
        frame["region_id"] = frame["region_id"].astype("Int64")
        return frame


def _quoted(path: Path) -> str:
    """A path in SQL; as the files are listed, no character of it has a meaning."""
    escaped = str.maketrans({"'": "''", "[": "[[]", "*": "[*]", "?": "[?]"})
    return f"'{str(path).translate(escaped)}'"


def load(path: str | Path | Log) -> Log:
    """Open an ingested log; one that is open stays as it is."""
    if isinstance(path, Log):
        return path
    if not isinstance(path, str | Path):
        raise LogevalError(
            f"{short(path)}: is not a log; give the folder of an ingested one, or what ingest "
            "returns, of a data frame, too"
        )
    path = Path(path)
    manifest = tables.read_manifest(path)
    if manifest["stage"] != "ingest":
        raise LogevalError(f"{path}: is not an ingested log; make one with `logeval ingest`")
    return Log(path, manifest)
