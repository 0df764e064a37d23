"""serps -> click statistics: identical (query, list, clicks) rows folded into one with a count.

DuckDB groups straight from the Parquet files, within a memory limit and on disk beyond it, so a
log of any size can be folded. Test SERPs never enter; repeat clicks count once. The split into
training and held-out part depends only on the seed and the session (or the day), not on the
order of rows or the number of workers. The result is kept and used again (``cache``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, TypeVar, Unpack

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from logeval.clicks.estimation.patterns import FoldedClicks, Patterns, patterns_of
from logeval.clicks.estimation.statistics.cache import cached, read_table
from logeval.clicks.estimation.statistics.stored import store
from logeval.errors import LogevalError
from logeval.log.log import Log
from logeval.log.queries import Query, sql_condition, sql_limit
from logeval.running.work import Task, Tick, run_tasks
from logeval.storage import files, tables

MAX_POSITIONS = 50
IN_MEMORY = 500_000  # rows, of 1 kB each while a model is fitted
MEMORY_LIMIT = "400MB"  # of DuckDB while it folds
T = TypeVar("T")
SHARD_FILES = 16  # of a log, folded by a worker at once: about 800,000 SERPs
_POWERS = "[" + ",".join(f"{1 << k}.0" for k in range(MAX_POSITIONS)) + "]::DOUBLE[]"


@dataclass(frozen=True)
class Holdout:
    """What is held out: a share of the sessions, days first..last, or lists in random order."""

    share: float = 0.0
    days: tuple[int, int] | None = None
    random: bool = False

    @classmethod
    def parse(cls, text: str | float | None) -> Holdout:
        """``0.1``, ``days:25-27``, ``days:27`` or ``random``; None holds nothing out."""
        if text is None:
            return cls()
        if text == "random":
            return cls(random=True)
        match = re.fullmatch(r"days:(\d+)(?:-(\d+))?", str(text))
        if match:
            first = int(match[1])
            return cls(days=(first, int(match[2] or first)))
        try:
            share = float(text)
        except ValueError:
            share = -1.0
        if not 0.0 <= share < 1.0:
            raise LogevalError(f"holdout={text}: write a share such as 0.1, days:25-27, or random")
        return cls(share=share)

    def sql(self, seed: int) -> str:
        """The condition that a SERP is held out."""
        if self.random:
            return "coalesce(random, false)"
        if self.days:
            return f"coalesce(day BETWEEN {self.days[0]} AND {self.days[1]}, false)"
        if not self.share:
            return "false"
        below = f"{int(self.share * 16**8):08x}"
        return f"md5('{int(seed)}:' || session_id) < '{below}'"


class Part(TypedDict, total=False):
    """Which part of a log is folded, how it is split, and by whom."""

    queries: list[Query] | None
    top_queries: int | None
    holdout: str | float | None
    seed: int
    scheduler: str | None


def fold(log: Log, **part: Unpack[Part]) -> pa.Table:
    """The click statistics of a log, in the schema ``CLICK_STATISTICS``.

    With a ``scheduler`` the workers of that Dask cluster fold the files of the log, which they must
    see under the same path, and only what they found is folded here.
    """
    return _kept(log, read_table, **part)


def fold_patterns(log: Log, **part: Unpack[Part]) -> tuple[FoldedClicks | None, Patterns | None]:
    """The training and the held-out patterns of a log; None where there are none.

    Of more than ``IN_MEMORY`` rows the training part stays on disk.
    """

    def read(file: Path) -> tuple[FoldedClicks | None, Patterns | None]:
        if pq.read_metadata(file).num_rows > IN_MEMORY:
            held_out = pq.read_table(file, filters=pc.field("holdout"))
            train: FoldedClicks | None = store(file)
        else:
            table = read_table(file)
            held_out, rows = held_out_rows(table), training_rows(table)
            train = patterns_of(rows) if rows.num_rows else None
        return train, patterns_of(held_out) if held_out.num_rows else None

    return _kept(log, read, **part)


def _kept(log: Log, read: Callable[[Path], T], **part: Unpack[Part]) -> T:
    queries, top_queries = part.get("queries"), part.get("top_queries")
    holdout, seed, scheduler = part.get("holdout"), part.get("seed", 0), part.get("scheduler")
    split = Holdout.parse(holdout)
    arguments = {
        "queries": None if queries is None else sorted(map(str, queries)),
        "top_queries": top_queries,
        "holdout": None if holdout is None else str(holdout),
        "seed": seed if split.share else None,
    }
    inputs = [{"serps": log.identity}]
    manifest = tables.manifest_of("click statistics", arguments, inputs)

    def write(out: Path) -> None:
        with log.connect() as db:
            db.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
            view_of_fitted(db)
            where = choose(db, queries, top_queries)
        if scheduler is None:
            _fold(log, out, where, split.sql(seed))
        else:
            _fold_on_cluster(log, out, where, split.sql(seed), scheduler)

    return cached(log.path, manifest, write, read)


def view_of_fitted(db: duckdb.DuckDBPyConnection) -> None:
    """The SERPs that may be fitted to."""
    db.execute("CREATE VIEW fitted AS SELECT * FROM serps WHERE NOT test")


def _fold(log: Log, out: Path, where: str, held_out: str) -> None:
    with log.connect() as db:
        db.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
        view_of_fitted(db)
        _write_sorted(db, _folded(where, held_out), out)


def _folded(where: str, held_out: str) -> str:
    """SQL: the rows of the view ``fitted``, equal ones once with their number."""
    return f"""
        SELECT query_id, region_id, holdout, items, clicks, count(*) AS count
        FROM (
            SELECT query_id, region_id, {held_out} AS holdout, items,
                {click_bits("clicks")} AS clicks
            FROM fitted {where}
            {"WHERE" if not where else "AND"} len(items) BETWEEN 1 AND {MAX_POSITIONS}
        )
        GROUP BY ALL"""


def _write_sorted(db: duckdb.DuckDBPyConnection, select: str, out: Path) -> None:
    db.execute(
        f"""COPY ({select} ORDER BY query_id, region_id, items, clicks, holdout)
        TO '{_quoted(str(out))}' (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)"""
    )


@dataclass(frozen=True)
class _Shard:
    """Files of a log, and what of them is folded."""

    log: Log
    files: tuple[str, ...]
    where: str
    held_out: str


def _fold_on_cluster(log: Log, out: Path, where: str, held_out: str, scheduler: str) -> None:
    names = sorted(name for name in log.manifest["files"] if name.startswith("serps/"))
    home = Log(log.path.resolve(), log.manifest)
    shards = [names[i : i + SHARD_FILES] for i in range(0, len(names), SHARD_FILES)]
    tasks = [
        Task("fold", len(shard), _Shard(home, tuple(shard), where, held_out)) for shard in shards
    ]
    with files.scratch() as folder:
        for i, rows in enumerate(
            run_tasks(_fold_shard, tasks, scheduler=scheduler, unit="files", quiet=True)
        ):
            tables.write_parquet(rows, folder / f"{i}.parquet")
        with log.connect() as db:
            db.execute(
                f"CREATE VIEW parts AS FROM read_parquet('{_quoted(str(folder))}/*.parquet')"
            )
            select = (
                "SELECT query_id, region_id, holdout, items, clicks, sum(count)::BIGINT AS count "
                "FROM parts GROUP BY ALL"
            )
            _write_sorted(db, select, out)


def _fold_shard(shard: _Shard, tick: Tick) -> pa.Table:
    """On a worker."""
    tables.check_files(shard.log.path, shard.log.manifest, shard.files)
    with shard.log.connect(shard.files) as db:
        view_of_fitted(db)
        return db.sql(_folded(shard.where, shard.held_out)).to_arrow_table()


def click_bits(clicks: str) -> str:
    """SQL: the clicked positions of a list of counts as bits, the first position lowest."""
    clicked = f"[(c > 0)::DOUBLE FOR c IN {clicks}]"
    return f"list_inner_product({clicked}, ({_POWERS})[1:len({clicks})])::BIGINT"


def choose(
    db: duckdb.DuckDBPyConnection,
    queries: list[Query] | None,
    top_queries: int | None,
    frequency: str = "count(*)",
) -> str:
    """The condition on the query; empty for all. A query without a region means all of them.

    ``frequency`` is how often a query was asked.
    """
    if queries is not None:
        known = db.execute(
            f"SELECT DISTINCT query_id, region_id FROM fitted WHERE {sql_condition(queries)}"
        ).fetchall()
        ids = {q for q, _ in known}
        missing = [
            q
            for q in queries
            if q not in known and (q.region_id is not None or q.query_id not in ids)
        ]
        if missing:
            names = ", ".join(map(str, missing[:5]))
            raise LogevalError(
                f"the log has no SERPs of query {names}; `describe` lists its queries"
            )
        return _among([Query(*row) for row in known])
    if top_queries is not None:
        rows = db.execute(
            "SELECT query_id, region_id FROM fitted GROUP BY ALL "
            f"ORDER BY {frequency} DESC, query_id, region_id {sql_limit(top_queries)}"
        ).fetchall()
        return _among([Query(*row) for row in rows])
    return ""


def _among(queries: list[Query]) -> str:
    if not queries:
        return "WHERE false"
    ids = ", ".join(str(q) for q in sorted({q.query_id for q in queries}))
    pairs = ", ".join(
        f"({q.query_id}, {'NULL' if q.region_id is None else q.region_id}::BIGINT)" for q in queries
    )
    return (
        f"WHERE query_id IN ({ids}) AND EXISTS (SELECT 1 FROM (VALUES {pairs}) AS wanted(q, r) "
        "WHERE wanted.q = query_id AND wanted.r IS NOT DISTINCT FROM region_id)"
    )


def _quoted(path: str) -> str:
    return path.replace("'", "''")


def training_rows(statistics: pa.Table) -> pa.Table:
    """The rows to fit to."""
    return statistics.filter(pc.invert(statistics["holdout"]))


def held_out_rows(statistics: pa.Table) -> pa.Table:
    """The rows to score on."""
    return statistics.filter(statistics["holdout"])
