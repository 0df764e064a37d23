"""Where click statistics are kept, so that the next fit of a log need not fold it again.

They lie beside the log, in ``click_statistics/``, or where that cannot be written in the user's
cache folder (``$XDG_CACHE_HOME/logeval``, else ``~/.cache/logeval``); if neither can, they are
folded each time. An entry is one Parquet file whose name is the hash of all it depends on and the
checksum of its bytes (a damaged one is folded again), written under another name and then renamed:
processes that fold the same log at once do not meet, and a reader never sees half a file. Beyond
``LIMIT`` bytes in a folder, the entries used least recently are removed.

Patterns of a log that is too large for memory, on disk.

The click statistics are sorted by query. They are cut into blocks of whole queries, and each block
is written to a file as the arrays of its own ``Patterns``. In memory are only the queries, the
(query, item) pairs and, for each block, which numbers its queries and pairs have among all: as in
``patterns_of``, the most frequent query is first. A pass of EM reads the file once, block by block.

serps -> click statistics: identical (query, list, clicks) rows folded into one with a count.

DuckDB groups straight from the Parquet files, within a memory limit and on disk beyond it, so a
log of any size can be folded. Test SERPs never enter; repeat clicks count once. The split into
training and held-out part depends only on the seed and the session (or the day), not on the
order of rows or the number of workers. The result is kept and used again (``cache``).

Tables of counts -> patterns: what can be fitted without knowing a page.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypedDict, TypeVar, Unpack

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from logeval.clicks.estimation.patterns import (
    BY_PATTERN,
    Counted,
    FoldedClicks,
    Patterns,
    patterns_of,
    query_index,
)
from logeval.errors import LogevalError
from logeval.log.log import Log
from logeval.log.queries import Query, sql_condition, sql_limit
from logeval.running.arrays import Ints, sum_by
from logeval.running.work import Task, Tick, run_tasks
from logeval.storage import files, tables
from logeval.storage.schemas import CLICK_STATISTICS

LIMIT = 1 << 30
K = TypeVar("K")


def cached(
    log: Path, manifest: tables.Manifest, fold: Callable[[Path], None], read: Callable[[Path], K]
) -> K:
    """The statistics that ``fold`` writes to a file, ``read`` again if they are there already."""
    key = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()[:32]
    folders = [log / "click_statistics", user_cache() / "click_statistics"]
    for file in [file for folder in folders for file in folder.glob(f"{key}-*.parquet")]:
        with contextlib.suppress(OSError, pa.ArrowException):
            if files.crc32(file) == file.stem.removeprefix(f"{key}-"):
                found = read(file)
                os.utime(file)  # used now
                return found
            file.unlink()  # damaged
    with contextlib.ExitStack() as held:
        partial = _partial(folders, key, held)
        if partial is None:
            nowhere = held.enter_context(files.scratch()) / f"{key}.parquet"
            fold(nowhere)
            return read(nowhere)
        fold(partial)
        found = read(partial)
        name = f"{key}-{files.crc32(partial)}.parquet"
        partial.replace(partial.with_name(name))
        shrink(partial.parent, LIMIT, keep=name)
    return found


def user_cache() -> Path:
    """The folder for what can be computed again."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if os.path.isabs(home) else Path.home() / ".cache") / "logeval"


def shrink(folder: Path, limit: int, keep: str) -> None:
    """Remove what was used least recently until ``limit`` bytes are left; never ``keep``."""
    files.remove_abandoned(folder)
    found = []
    for file in folder.iterdir():
        with contextlib.suppress(OSError):  # another process may remove it first
            stat = file.stat()
            if file.suffix == ".parquet":
                found.append((file.name == keep, stat.st_mtime_ns, stat.st_size, file))
    total = sum(size for _, _, size, _ in found)
    for kept, _, size, file in sorted(found):
        if total <= limit or kept:
            break
        with contextlib.suppress(OSError):
            file.unlink()
        total -= size


def _partial(folders: list[Path], key: str, held: contextlib.ExitStack) -> Path | None:
    """A new file in the first folder that can be written, as long as ``held`` lasts."""
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                return held.enter_context(files.partial_file(folder / f"{key}.parquet", 0))
            except LogevalError:  # another process folds the same
                return None
    return None


def read_table(file: Path) -> pa.Table:
    """All statistics of a file."""
    return pq.read_table(file).select(CLICK_STATISTICS.names).cast(CLICK_STATISTICS)


BLOCK = 100_000  # patterns, about


@dataclass(frozen=True)
class StoredPatterns(FoldedClicks):
    """Patterns in a file, which is gone with the object."""

    queries: list[Query]
    item_ids: Ints  # (I,)
    offsets: Ints  # (Q + 1,)
    size: tuple[int, int]  # P, K
    numbers: list[tuple[Ints, Ints]] = field(repr=False)  # of the queries and pairs of each block
    file: IO[bytes] = field(repr=False)

    def __post_init__(self) -> None:
        weakref.finalize(self, self.file.close)

    @property
    def P(self) -> int:
        """The number of patterns."""
        return self.size[0]

    @property
    def K(self) -> int:
        """The longest list of all."""
        return self.size[1]

    def blocks(self) -> Iterator[Patterns]:
        """The patterns as they are read."""
        self.file.seek(0)
        for queries, pairs in self.numbers:
            query, items, clicks, length, count = (np.load(self.file) for _ in BY_PATTERN)
            if more := self.K - items.shape[1]:
                items = np.pad(items, ((0, 0), (0, more)), constant_values=-1)
                clicks = np.pad(clicks, ((0, 0), (0, more)))
            yield Patterns(
                self.queries,
                queries[query],
                pairs[items],
                clicks,
                length,
                count,
                self.item_ids,
                self.offsets,
            )


def store(statistics: Path, *, holdout: bool = False, block: int = BLOCK) -> StoredPatterns | None:
    """The training rows of a click statistics file, or the held-out ones; None without rows."""
    file = tempfile.TemporaryFile(prefix="logeval-")  # noqa: SIM115 - as long as the patterns live
    parts: list[Patterns] = []  # with their arrays taken out
    K = P = 0
    for table in _whole_queries(statistics, holdout, block):
        data = patterns_of(table)
        for name in BY_PATTERN:
            array = getattr(data, name)
            np.save(file, array.astype(np.int32) if name == "items" else array)
        K, P = max(K, data.K), P + data.P
        serps = data.serps  # kept, as a cached property, when the arrays are gone
        parts.append(data.take(np.zeros(0, dtype=np.int64)))
        parts[-1].__dict__["serps"] = serps
    if not parts:
        file.close()
        return None
    serps = np.concatenate([part.serps for part in parts])
    seen = [query for part in parts for query in part.queries]
    # frequent queries first, of equally frequent ones the smaller id, as in patterns_of
    ids = np.array([q.query_id for q in seen])
    regions = np.array([-1 if q.region_id is None else q.region_id for q in seen])
    order = np.lexsort((regions, ids, -serps))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))

    L = np.concatenate([np.diff(part.offsets) for part in parts])
    offsets = np.concatenate([[0], np.cumsum(L[order])])
    item_ids = np.empty(offsets[-1], dtype=np.int64)
    numbers, first = [], 0
    for part in parts:
        mine = rank[first : first + part.Q]
        first += part.Q
        local = np.arange(part.I) - part.offsets[part.item_query]
        pairs = offsets[mine][part.item_query] + local
        item_ids[pairs] = part.item_ids
        numbers.append((mine, np.append(pairs, -1)))  # -1, beyond the end of a list, stays -1
    return StoredPatterns([seen[i] for i in order], item_ids, offsets, (P, K), numbers, file)


def _whole_queries(statistics: Path, holdout: bool, size: int) -> Iterator[pa.Table]:
    """Rows of at least ``size`` patterns, or the rest, that end with a query."""
    waiting: list[pa.Table] = []
    rows = 0
    for batch in pq.ParquetFile(statistics).iter_batches(batch_size=size):
        table = pa.Table.from_batches([batch]).select(CLICK_STATISTICS.names).cast(CLICK_STATISTICS)
        kept = table.filter(pa.compute.equal(table["holdout"], holdout))
        waiting.append(kept)
        rows += kept.num_rows
        if rows < size:
            continue
        together = pa.concat_tables(waiting)
        end = _start_of_last_query(together)
        if end:
            yield together.slice(0, end)
        waiting = [together.slice(end)]
        rows = together.num_rows - end
    if rows:
        yield pa.concat_tables(waiting)


def _start_of_last_query(table: pa.Table) -> int:
    """The row where the last query begins."""
    changed = np.zeros(table.num_rows, dtype=np.bool_)
    for name in ("query_id", "region_id"):
        values = table[name].fill_null(np.iinfo(np.int64).min).to_numpy()
        changed[1:] |= values[1:] != values[:-1]
    return int(np.flatnonzero(changed).max(initial=0))


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
    """The SERPs that may be fitted to; users of a page that begins later have seen others above."""
    db.execute(
        "CREATE VIEW fitted AS SELECT * FROM serps WHERE NOT test AND coalesce(first, 1) = 1"
    )


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


def counted_patterns(
    log: Log, queries: list[Query] | None = None, top_queries: int | None = None
) -> Counted | None:
    """The counts of a log, clicked and unclicked impressions apart; None if there are none.

    Queries come by frequency, their items too, as those of SERPs do.
    """
    with log.connect(holds="counts") as db:
        db.execute("CREATE VIEW fitted AS FROM counts")
        where = choose(db, queries, top_queries, "sum(impressions)")
        rows = db.sql(f"SELECT * FROM counts {where}").to_arrow_table()
    query, seen = query_index(rows)
    item, position, shown, clicks = (
        rows[name].to_numpy() for name in ("item_id", "position", "impressions", "clicks")
    )
    if not shown.sum():
        return None
    total = sum_by(query, shown.astype(np.float64), len(seen))
    order = np.argsort(-total, kind="stable")
    query = np.argsort(order)[query]
    # (query, item) pairs: by query, the most shown first, then by id
    keys, pair = np.unique(np.stack([query, item]), axis=1, return_inverse=True)
    pair = pair.ravel()
    impressions = sum_by(pair, shown.astype(np.float64), keys.shape[1])
    by = np.lexsort((keys[1], -impressions, keys[0]))
    pair = np.argsort(by)[pair]
    # a pattern of the clicked impressions, and one of the others
    row = np.concatenate([np.flatnonzero(clicks), np.flatnonzero(shown > clicks)])
    clicked = np.arange(len(row)) < np.count_nonzero(clicks)
    k = position[row] - 1
    K = int(position.max())
    items = np.full((len(row), K), -1, dtype=np.int64)
    items[np.arange(len(row)), k] = pair[row]
    marks = np.zeros((len(row), K), dtype=np.bool_)
    marks[np.arange(len(row)), k] = clicked
    count = np.where(clicked, clicks[row], shown[row] - clicks[row]).astype(np.float64)
    offsets = np.searchsorted(keys[0][by], np.arange(len(seen) + 1))
    return Counted(
        [seen[i] for i in order], query[row], items, marks, k + 1, count, keys[1][by], offsets
    )
