"""SERPs folded for estimation: patterns with counts, and which of them share a session.

A pattern is a (query, first K items, clicked positions), as in click statistics. An interval
must resample sessions, not SERPs, so sessions with several SERPs are kept as *clusters*: a
cluster is a multiset of patterns, with the number of sessions that have exactly these. DuckDB
does both foldings; after them the cost depends on distinct things, not on SERPs.

A log of single placements, without lists, is read as one of lists with one item, with holes (-1)
before it. A policy then shows an item at one of the positions, and its value is per placement.

Resampled logs give every session a Poisson(1) weight, in the space of counts: m sessions of the
same type have together a Poisson(m) weight, so one number per type is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from scipy import sparse

from logeval.clicks.estimation.fold import choose, click_bits
from logeval.clicks.estimation.patterns import Patterns, patterns_of
from logeval.errors import LogevalError
from logeval.log.log import Log, load
from logeval.log.queries import Query
from logeval.running import seeds
from logeval.running.arrays import Floats, Ints, sum_by

FOLD_MEMORY = "350MB"  # of DuckDB; it goes to disk beyond
MAX_POSITIONS = 10  # of a list, unless more are asked for


def prefix_numbers(items: Ints) -> Ints:
    """The number of every prefix (n, K): equal prefixes have equal numbers; -1 beyond the end."""
    node = np.full(items.shape, -1, dtype=np.int64)
    size = int(items.max(initial=0)) + 1
    parent, n = np.zeros(len(items), dtype=np.int64), 0
    for k in range(items.shape[1]):
        there = np.flatnonzero(items[:, k] >= 0)
        _, number = np.unique(parent[there] * size + items[there, k], return_inverse=True)
        parent[there] = number
        node[there, k] = n + number
        n += int(number.max(initial=-1)) + 1
    return node


@dataclass(frozen=True)
class Logged:
    """The SERPs of a log, or of a part of it."""

    patterns: Patterns
    part: Ints  # (P,) the part of the log; 0 where there are no parts
    alone: Ints  # (P,) SERPs whose session has no other SERP
    clusters: sparse.csr_matrix  # (P, T) SERPs of each pattern in a session of type T
    sessions: Ints  # (T,) sessions of each type
    given: Floats | None  # (P, K) propensities as logged
    fold: sparse.csr_matrix | None = None  # (P, P of the whole lists) adds up their SERPs
    rewards: Floats | None = None  # (P, K) second rewards, 0 where there is none
    placed: bool = False  # single placements, whose propensities are those given the position

    @cached_property
    def shares(self) -> Floats:
        """The share of each position in the placements of a query, (Q, K)."""
        patterns, (p, k) = self.patterns, np.nonzero(self.patterns.items >= 0)
        cell = patterns.query[p] * patterns.K + k
        total = sum_by(cell, patterns.count[p], patterns.Q * patterns.K)
        return total.reshape(patterns.Q, -1) / patterns.serps[:, None]

    @cached_property
    def propensities(self) -> Floats | None:
        """(P, K) the probability that a SERP of the query shows the item at this position."""
        if self.given is None or not self.placed:
            return self.given
        return self.given * self.shares[self.patterns.query]


def cut(whole: Logged, K: int) -> Logged:
    """The first K positions: fewer patterns, the same items and sessions."""
    old = whole.patterns
    there = np.flatnonzero((old.items[:, :K] >= 0).any(axis=1))  # others begin further down
    items, clicks = old.items[there, :K], old.clicks[there, :K]
    bits = (clicks.astype(np.int64) << np.arange(items.shape[1])).sum(axis=1)
    end = prefix_numbers(items)[np.arange(len(items)), np.minimum(old.length[there], K) - 1]
    keys = [end, bits, whole.part[there]]
    given = None if whole.given is None else whole.given[there, :K]
    if given is not None:
        p = np.nan_to_num(given, nan=-1.0)  # beyond the end
        keys.append(np.unique(p, axis=0, return_inverse=True)[1].ravel())
    rewards = None if whole.rewards is None else whole.rewards[there, :K]
    if rewards is not None:
        keys.append(np.unique(rewards, axis=0, return_inverse=True)[1].ravel())
    number = np.zeros(len(items), dtype=np.int64)
    for key in keys:
        _, code = np.unique(key, return_inverse=True)
        _, number = np.unique(number * (int(code.max()) + 1) + code, return_inverse=True)
    _, first = np.unique(number, return_index=True)
    one, shape = np.ones(len(items), dtype=np.float32), (len(first), old.P)
    fold = sparse.csr_matrix((one, (number, there)), shape=shape)
    patterns = Patterns(
        old.queries, old.query[there[first]], items[first], clicks[first],
        np.minimum(old.length[there[first]], K), np.asarray(fold @ old.count), old.item_ids,
        old.offsets,
    )  # fmt: skip
    return Logged(
        patterns,
        whole.part[there[first]],
        np.rint(fold @ whole.alone.astype(np.float64)).astype(np.int64),
        sparse.csr_matrix(fold @ whole.clusters),
        whole.sessions,
        None if given is None else given[first],
        fold,
        None if rewards is None else rewards[first],
        whole.placed,
    )


# of a list that begins further down, and of a single placement, the places before it are holes
LISTS = """
    SELECT session_id, query_id, region_id, day, random, rewards IS NOT NULL AS rewarded,
        {items} AS items, {clicks} AS clicks, {propensities} AS propensities, {rewards} AS rewards
    FROM ({rows})
"""
SERPS = "SELECT *, greatest(coalesce(first, 1) - 1, 0) AS before FROM {rows}"
PLACEMENTS = """
    SELECT coalesce(session_id, -row_number() OVER ()) AS session_id, query_id, region_id, day,
        NULL::BOOLEAN AS random, position - 1 AS before, [item_id] AS items, [clicks] AS clicks,
        CASE WHEN propensity IS NOT NULL THEN [propensity] END AS propensities,
        CASE WHEN reward IS NOT NULL THEN [reward] END AS rewards
    FROM {rows}
"""
KNOWN_REWARDS = """[
    coalesce(x, 0.0) FOR x IN coalesce(rewards, list_resize([]::DOUBLE[], len(items)))
]"""


def _with_holes(of_list: str, kind: str, hole: str) -> str:
    """SQL: a list with as many holes before it as there are places."""
    holes = f"list_resize([]::{kind}[], before, {hole}::{kind})"
    there = f"before > 0 AND {of_list} IS NOT NULL"
    return f"CASE WHEN {there} THEN list_concat({holes}, {of_list}) ELSE {of_list} END"


def rows_of(log: Log) -> str:
    """SQL: the rows of a log from which anything may be learned."""
    return "placements" if log.holds == "placements" else "(FROM serps WHERE NOT test) AS serps"


def parts_sql(parts: int | None, seed: int) -> str:
    """The part of a SERP: its day, or one of ``parts`` equal shares of the sessions."""
    if parts is None:
        return "coalesce(day, -1)"
    return f"(('0x' || left(md5('{int(seed)}:part:' || session_id), 12))::BIGINT % {int(parts)})"


def read_logged(
    log: Log | Path | str,
    K: int | None = None,
    *,
    queries: list[Query] | None = None,
    top_queries: int | None = None,
    where: str = "true",
    part: str = "0",
    propensities: bool = False,
    rewards: bool = False,
) -> Logged:
    """Fold the SERPs that fulfil ``where``; test SERPs never enter, repeat clicks count once.

    ``part`` is an SQL expression that numbers the parts of the log. With ``propensities`` the
    logged ones tell patterns apart, so that a pattern has one propensity at each position; with
    ``rewards``, where the log has a second reward, these do as well.
    """
    source = load(log)
    placed = source.holds == "placements"
    with source.connect(holds="placements" if placed else "serps") as db:
        db.execute(f"SET memory_limit = '{FOLD_MEMORY}'")
        db.execute("SET preserve_insertion_order = true")  # of rows without a session
        lists = LISTS.format(
            items=_with_holes("items", "BIGINT", "NULL"),
            clicks=_with_holes("clicks", "INTEGER", "0"),
            propensities=_with_holes("propensities", "DOUBLE", "NULL"),
            rewards=_with_holes(KNOWN_REWARDS, "DOUBLE", "0.0"),
            rows=(PLACEMENTS if placed else SERPS).format(rows=rows_of(source)),
        )
        db.execute(f"CREATE VIEW fitted AS FROM ({lists}) WHERE {where}")
        chosen = choose(db, queries, top_queries)
        cut = "" if K is None else f"[1:{int(K)}]"
        more = ["propensities"] if propensities else []
        if rewards and db.execute("SELECT bool_or(rewarded) FROM fitted").fetchone() == (True,):
            more.append("rewards")
        logged = "".join(f", {name}{cut} AS {name}" for name in more)
        db.execute(
            f"""
            CREATE TABLE rows AS
            SELECT session_id, query_id, region_id, ({part})::BIGINT AS part,
                items{cut} AS items{logged},
                {click_bits(f"clicks{cut}")} AS clicks
            FROM fitted {chosen}
            """
        )
        key = ", ".join(["query_id, region_id, part, items, clicks", *more])
        table = _patterns(db, key)
        if not table.num_rows:
            raise LogevalError(f"{log}: there are no SERPs to replay; check the queries and days")
        P = table.num_rows
        clusters, sessions = _clusters(db, key, P)
    patterns = patterns_of(table)
    within = np.asarray(clusters @ sessions).astype(np.int64)
    return Logged(
        patterns,
        table["part"].to_numpy().astype(np.int64),
        patterns.count.astype(np.int64) - within,
        clusters,
        sessions,
        _propensities(table, patterns, str(source.path)) if propensities else None,
        rewards=_by_position(table["rewards"], patterns, 0.0) if "rewards" in more else None,
        placed=placed,
    )


def _patterns(db: duckdb.DuckDBPyConnection, key: str) -> pa.Table:
    db.execute(
        f"""
        CREATE TABLE patterns AS
        SELECT row_number() OVER (ORDER BY {key}) - 1 AS id, *
        FROM (SELECT {key}, count(*) AS count FROM rows GROUP BY ALL)
        """
    )
    return db.sql("SELECT * FROM patterns ORDER BY id").to_arrow_table()


def _clusters(db: duckdb.DuckDBPyConnection, key: str, P: int) -> tuple[sparse.csr_matrix, Ints]:
    """The distinct multisets of patterns of sessions with several SERPs, and their numbers."""
    same = " AND ".join(
        f"rows.{name} IS NOT DISTINCT FROM patterns.{name}" for name in key.split(", ")
    )
    found = db.sql(
        f"""
        SELECT ids, count(*) AS sessions FROM (
            SELECT list_sort(list(patterns.id)) AS ids
            FROM (
                SELECT * FROM rows
                WHERE session_id IN (SELECT session_id FROM rows GROUP BY 1 HAVING count(*) > 1)
            ) AS rows JOIN patterns ON {same}
            GROUP BY session_id
        ) GROUP BY ids ORDER BY ids
        """
    ).to_arrow_table()
    ids = found["ids"].combine_chunks()
    column = np.repeat(np.arange(len(ids), dtype=np.int32), np.diff(ids.offsets.to_numpy()))
    row = ids.flatten().to_numpy().astype(np.int32)
    one = np.ones(len(row), dtype=np.float32)
    # adds up what is there twice
    clusters = sparse.csr_matrix((one, (row, column)), shape=(P, len(ids)))
    return clusters, found["sessions"].to_numpy().astype(np.int64)


def _by_position(lists: pa.ChunkedArray, patterns: Patterns, nothing: float) -> Floats:
    """Lists of numbers as (P, K), with ``nothing`` where there is none."""
    values = np.full(patterns.items.shape, nothing)
    for p, row in enumerate(lists.to_pylist()):
        if row is not None:
            values[p, : len(row)] = [nothing if x is None else x for x in row]
    return values


def _propensities(table: pa.Table, patterns: Patterns, where: str) -> Floats:
    """As logged; nan beyond the end of a list, and an error where one is missing."""
    values = _by_position(table["propensities"], patterns, np.nan)
    if np.isnan(values[patterns.items >= 0]).any():
        raise LogevalError(
            f"{where}: some results have no logged propensity; ingest a log with the column "
            "`propensities`, or use propensities=estimated"
        )
    return values


BLOCK_BYTES = 48e6  # of the drawn numbers held at once


def resampled(logged: Logged, rounds: int, seed: int) -> Iterator[Floats]:
    """Numbers of SERPs of every pattern (P, b) in ``rounds`` resampled logs, block by block."""
    rng = seeds.generator(seed, "replay", "bootstrap")
    size = len(logged.alone) + len(logged.sessions)
    block = int(np.clip(BLOCK_BYTES / (12 * size), 1, 64))
    for first in range(0, rounds, block):
        b = min(block, rounds - first)
        W = _poisson(logged.alone, b, rng)
        if len(logged.sessions):
            W += logged.clusters @ _poisson(logged.sessions, b, rng)
        yield W


def _poisson(mean: Ints, rounds: int, rng: np.random.Generator) -> Floats:
    """Numbers (n, rounds) of means (n,), as float32, exact up to 2^24."""
    return rng.poisson(mean[:, None], (len(mean), rounds)).astype(np.float32)  # type: ignore[return-value]


def thinned(logged: Logged, share: float, seed: int) -> Floats:
    """Numbers of SERPs of every pattern (P,) in a share of the sessions, drawn at random."""
    rng = seeds.generator(seed, "replay", "held out")
    alone = rng.binomial(logged.alone, share)
    several = logged.clusters @ rng.binomial(logged.sessions, share)
    found: Floats = (alone + np.asarray(several)).astype(np.float64)
    return found
