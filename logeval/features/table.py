"""The sparse matrix of clicks: A[i, j] is how often user i clicked item j (gl-cdcm, section 4.2).

DuckDB counts straight from the Parquet files, within a memory limit and on disk beyond it, so
only the cells that are not 0 ever come into memory. Where the log has no users, a row is a
session. Test SERPs never enter; repeat clicks count once, as everywhere.

Where users and items are both more than ``MOST``, only the items that were clicked most enter, so
that the memory of the decomposition is bounded; ``used`` says what share of the clicks they have.

Vectors of the items (and users) of some queries of a log, as a table.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
from scipy import sparse

from logeval.clicks.estimation.fold import Holdout
from logeval.errors import LogevalError
from logeval.features.vectors import ITEM, Vectors, dimension, truncated_svd
from logeval.log.log import Log
from logeval.log.queries import Query, sql_condition
from logeval.running import seeds
from logeval.running.arrays import Floats, Ints, place_of
from logeval.running.progress import Progress
from logeval.storage import schemas, tables

if TYPE_CHECKING:
    from logeval.features.make import MakeFeatures


USER, SESSION = "user", "session"
CHUNK = 1 << 16  # rows that DuckDB hands over at a time
MOST = 100_000  # of users or items, whichever are fewer


@dataclass(frozen=True)
class ClickMatrix:
    """Clicks of users (or sessions) on items."""

    clicks: sparse.csr_array  # (users, items)
    rows: str  # what a row is: user or session
    user_ids: Ints
    item_ids: Ints
    used: float  # share of the clicks


def click_matrix(log: Log, condition: str = "true", wanted: Ints | None = None) -> ClickMatrix:
    """The click matrix of the SERPs that fulfil an SQL condition.

    Items that are ``wanted`` are in it if they were clicked, however rarely.
    """
    with log.connect() as db:
        db.execute(f"CREATE VIEW used AS SELECT * FROM serps WHERE NOT test AND ({condition})")
        ((users,),) = db.execute("SELECT count(user_id) FROM used").fetchall()
        rows = USER if users else SESSION
        db.execute(
            f"""
            CREATE VIEW clicked AS SELECT u, item
            FROM (SELECT {rows}_id AS u, unnest(items) AS item, unnest(clicks) AS c FROM used)
            WHERE c > 0 AND u IS NOT NULL
            """
        )
        ((users,),) = db.execute("SELECT count(DISTINCT u) FROM clicked").fetchall()
        if not users:
            raise LogevalError(f"{log.path}: there is no click to make features from")
        found = db.execute(
            "SELECT item, count(*) AS n FROM clicked GROUP BY item ORDER BY n DESC, item"
        ).fetchnumpy()
        item, n = np.asarray(found["item"]), np.asarray(found["n"])
        kept = np.ones(len(item), dtype=bool)
        if users > MOST:
            kept[MOST:] = np.isin(item[MOST:], [] if wanted is None else wanted)
        item_ids = np.sort(item[kept])
        clicks, user_ids = _counted(db, item_ids)
    return ClickMatrix(clicks, rows, user_ids, item_ids, float(n[kept].sum() / n.sum()))


def _counted(db: duckdb.DuckDBPyConnection, item_ids: Ints) -> tuple[sparse.csr_array, Ints]:
    """How often each user clicked each of the items, row by row as DuckDB hands them over."""
    users, lengths, columns, counts = [], [], [], []
    cells = db.sql("SELECT u, item, count(*) AS n FROM clicked GROUP BY ALL ORDER BY u, item")
    for u, item, n in _batches(cells):
        j = np.searchsorted(item_ids, item).clip(max=len(item_ids) - 1)
        mine = item_ids[j] == item
        found, length = np.unique(u[mine], return_counts=True)
        users.append(found)
        lengths.append(length)
        columns.append(j[mine].astype(np.int32))
        counts.append(n[mine].astype(np.float64))
    user_ids, row = np.unique(np.concatenate(users), return_inverse=True)  # two batches share one
    ends = np.cumsum(np.bincount(row, weights=np.concatenate(lengths)).astype(np.int64))
    cells_of = np.concatenate(counts), np.concatenate(columns), np.concatenate([[0], ends])
    return sparse.csr_array(cells_of, shape=(len(user_ids), len(item_ids))), user_ids


def _batches(result: duckdb.DuckDBPyRelation) -> Iterator[tuple[Ints, ...]]:
    for batch in result.to_arrow_reader(CHUNK):
        yield tuple(column.to_numpy() for column in batch.columns)


HALF = 0.5  # of the sessions, for the features; the simulator has the other


@dataclass(frozen=True, repr=False)
class Features:
    """Vectors of items (by query) and users, with the manifest of how they were made."""

    items: pa.Table  # schemas.FEATURES
    users: pa.Table  # schemas.USER_FEATURES; empty where the log has no users
    manifest: tables.Manifest

    def __repr__(self) -> str:
        return (
            f"Features: {self.items.num_rows:,} items and {self.users.num_rows:,} users of queries "
            f"{', '.join(self.queries)}, contexts {self.context} of length {self.dimension:,}"
        )

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>"

    @property
    def context(self) -> str:
        """item, user+item or user*item."""
        return str(self.manifest["arguments"]["context"])

    @property
    def d(self) -> int:
        """Length of an item's vector."""
        return int(self.manifest["rank"])

    @property
    def r(self) -> int:
        """Entries of user and item that the outer product takes."""
        return int(self.manifest["product_rank"])

    @property
    def dimension(self) -> int:
        """Length of a context."""
        return dimension(self.context, self.d, self.r)

    @cached_property
    def queries(self) -> list[str]:
        """The queries, most frequent first."""
        return list(self.manifest["queries"])

    def of_query(self, query: str) -> tuple[Ints, Floats]:
        """The item ids of a query and their vectors (L, d)."""
        q, region = Query.of(query)
        ids = np.asarray(self.items["query_id"])
        regions = self.items["region_id"].to_pandas()
        mine = (ids == q) & (regions.isna() if region is None else regions == region).to_numpy()
        rows = self.items.filter(pa.array(mine))
        return np.asarray(rows["item_id"]), _matrix(rows["vector"], self.d)

    def of_users(self) -> tuple[Ints, Floats]:
        """The user ids and their vectors (U, d)."""
        return np.asarray(self.users["user_id"]), _matrix(self.users["vector"], self.d)

    def write(self, out: Path, overwrite: bool = False) -> None:
        """Write the folder."""
        with tables.staged(out, overwrite=overwrite) as folder:
            tables.write_parquet(self.items, folder / "features.parquet")
            tables.write_parquet(self.users, folder / "user_features.parquet")
            tables.write_manifest(folder, self.manifest)


def make_table(asked: MakeFeatures, queries: list[str], manifest: tables.Manifest) -> Features:
    """Features of the ``items`` most shown items of each query, from an SVD of all clicks."""
    log, same_log, context = asked.opened, asked.same_log, asked.context
    held_out = Holdout(share=HALF).sql(asked.seed)
    with Progress("features", total=3, unit="steps", quiet=asked.quiet) as progress:
        shown = _shown(log, queries, asked.items, "true" if same_log else f"NOT ({held_out})")
        wanted = shown["item_id"].to_numpy()
        matrix = click_matrix(log, "true" if same_log else held_out, wanted)
        if context != ITEM and matrix.rows == SESSION:
            raise LogevalError(f"{log.path}: the log has no users; use the context {ITEM!r}")
        progress.advance(1)
        factors = truncated_svd(matrix.clicks, asked.dim, asked.seed)
        progress.advance(1)
        found = _items(shown, matrix.item_ids, factors.items)
        who = _users(log, queries, asked.users, matrix.user_ids, factors.users, asked.seed)
        progress.advance(1)
    rank = len(factors.values)
    manifest |= {
        "rank": rank,
        "product_rank": min(asked.product_dim, rank),
        "queries": queries,
        "matrix": {
            "rows": matrix.rows,
            "shape": list(matrix.clicks.shape),
            "cells": int(matrix.clicks.nnz),
            "share_of_clicks": matrix.used,
        },
        "never_clicked": int((np.linalg.norm(_matrix(found["vector"], rank), axis=1) == 0).sum()),
        "singular_values": [float(f"{s:.6g}") for s in factors.values],
    }
    return Features(found, who, manifest)


def read_features(folder: Path | str) -> Features:
    """The features that ``make_features`` wrote.

    >>> _ = logeval.make_features("data/log", items=20, dim=5, out="data/features", quiet=True)
    >>> logeval.read_features("data/features").d
    5
    """
    return tables.consistent(folder, lambda manifest: _of(Path(folder), manifest))


def _of(folder: Path, manifest: tables.Manifest) -> Features:
    if manifest.get("stage") != "features":
        raise LogevalError(f"{folder}: holds no features; make them with `logeval features`")
    items, users = (tables.table_of(folder, manifest, n) for n in ("features", "user_features"))
    return Features(items, users, manifest)


def chosen_queries(log: Log, top: int, queries: list[str] | None) -> list[str]:
    """The names of the queries, which must be in the log."""
    if queries is None:
        return [str(q) for q in log.top_queries(top)["query"]]
    with log.connect() as db:
        known = db.execute(
            "SELECT DISTINCT query_id, region_id FROM serps "
            f"WHERE NOT test AND ({sql_condition(queries)})"
        ).fetchall()
    names = {str(Query(q, r)) for q, r in known}
    if missing := [q for q in queries if q not in names]:
        raise LogevalError(f"{log.path}: there are no SERPs of query {log.names.query(missing[0])}")
    return list(queries)


def _shown(log: Log, queries: list[str], items: int, condition: str) -> pd.DataFrame:
    """The items of each query that were shown most often, and how often they were."""
    with log.connect() as db:
        frame: pd.DataFrame = db.execute(
            f"""
            SELECT query_id, region_id, item AS item_id, count(*) AS impressions
            FROM (
                SELECT query_id, region_id, unnest(items) AS item FROM serps
                WHERE NOT test AND ({sql_condition(queries)}) AND ({condition})
            )
            GROUP BY query_id, region_id, item
            QUALIFY row_number() OVER (
                PARTITION BY query_id, region_id ORDER BY count(*) DESC, item
            ) <= {int(items)}
            ORDER BY query_id, region_id, impressions DESC, item_id
            """
        ).df()
    return frame


def _items(shown: pd.DataFrame, item_ids: Ints, vectors: Vectors) -> pa.Table:
    ids = shown["item_id"].to_numpy()
    at = place_of(ids, item_ids)
    rows = np.where((at >= 0)[:, None], vectors.scaled(at), 0.0)
    columns: dict[str, Any] = {
        "query_id": pa.array(shown["query_id"], from_pandas=True),
        "region_id": pa.array(shown["region_id"].astype("Int64"), from_pandas=True),
        "item_id": ids,
        "impressions": shown["impressions"].to_numpy(),
        "vector": tables.list_column(rows),
    }
    return pa.table(columns).cast(schemas.FEATURES)


def _users(
    log: Log, queries: list[str], n: int, user_ids: Ints, vectors: Vectors, seed: int
) -> pa.Table:
    """``n`` of the users who asked one of the queries, drawn at random."""
    with log.connect() as db:
        asked = db.execute(
            "SELECT DISTINCT user_id FROM serps "
            f"WHERE NOT test AND user_id IS NOT NULL AND ({sql_condition(queries)})"
        ).fetchnumpy()["user_id"]
    at = np.flatnonzero(np.isin(user_ids, asked))
    if len(at) > n:
        at = np.sort(seeds.generator(seed, "users of features").choice(at, n, replace=False))
    columns: dict[str, Any] = {
        "user_id": user_ids[at],
        "vector": tables.list_column(vectors.scaled(at)),
    }
    return pa.table(columns).cast(schemas.USER_FEATURES)


def _matrix(column: pa.ChunkedArray, d: int) -> Floats:
    flat = column.combine_chunks()
    flat = flat.chunk(0) if isinstance(flat, pa.ChunkedArray) and flat.num_chunks else flat
    values = np.asarray(flat.flatten()) if len(column) else np.empty(0)
    return values.reshape(len(column), d).astype(np.float64)
