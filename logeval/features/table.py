"""``logeval features``: vectors of the items (and users) of a log's top queries, as a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from logeval.clicks.estimation.click_statistics import Holdout
from logeval.errors import LogevalError, unknown_names
from logeval.features.contexts import CONTEXTS, ITEM, dimension
from logeval.features.factors import Vectors, truncated_svd
from logeval.features.matrix import SESSION, click_matrix
from logeval.log.log import Log, load
from logeval.log.queries import query_key, query_name, sql_condition
from logeval.running import seeds
from logeval.running.arrays import Floats, Ints
from logeval.running.progress import Progress
from logeval.storage import tables

MOST_DIMENSIONS = 1_000  # singular values; memory grows with them
HALF = 0.5  # of the sessions, for the features; the simulator has the other


@dataclass(frozen=True)
class Features:
    """Vectors of items (by query) and users, with the manifest of how they were made."""

    items: pa.Table  # tables.FEATURES
    users: pa.Table  # tables.USER_FEATURES; empty where the log has no users
    manifest: tables.Manifest

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
        q, region = query_key(query)
        ids = np.asarray(self.items["query_id"])
        regions = self.items["region_id"].to_pandas()
        mine = (ids == q) & (regions.isna() if region is None else regions == region).to_numpy()
        rows = self.items.filter(pa.array(mine))
        return np.asarray(rows["item_id"]), _matrix(rows["vector"], self.d)

    def of_users(self) -> tuple[Ints, Floats]:
        """The user ids and their vectors (U, d)."""
        return np.asarray(self.users["user_id"]), _matrix(self.users["vector"], self.d)


def make_features(
    log: Log | Path | str,
    *,
    top_queries: int | None = None,
    queries: list[str] | None = None,
    items: int = 100,
    dim: int = 200,
    context: str = ITEM,
    product_dim: int = 10,
    users: int = 2_000,
    same_log: bool = False,
    seed: int = 0,
    out: Path | str | None = None,
    overwrite: bool = False,
    quiet: bool = False,
) -> Features:
    """Features of the ``items`` most shown items of each query, from an SVD of all clicks.

    By default from the half of the sessions that ``fit_models(holdout=0.5, seed=seed)`` holds
    out, so that features and simulator share no session; ``same_log`` takes all sessions.
    """
    log = log if isinstance(log, Log) else load(log)
    manifest = wanted_manifest(
        log, top_queries=top_queries, queries=queries, items=items, dim=dim, context=context,
        product_dim=product_dim, users=users, same_log=same_log, seed=seed,
    )  # fmt: skip
    chosen: list[str] = manifest["arguments"]["queries"]
    if out is not None and tables.same_work(Path(out), manifest):
        return read_features(out)
    held_out = Holdout(share=HALF).sql(seed)
    with Progress("features", total=3, unit="steps", quiet=quiet) as progress:
        shown = _shown(log, chosen, items, "true" if same_log else f"NOT ({held_out})")
        wanted = shown["item_id"].to_numpy()
        matrix = click_matrix(log, "true" if same_log else held_out, wanted)
        if context != ITEM and matrix.rows == SESSION:
            raise LogevalError(f"{log.path}: the log has no users; use the context {ITEM!r}")
        progress.advance(1)
        factors = truncated_svd(matrix.clicks, dim, seed)
        progress.advance(1)
        found = _items(shown, matrix.item_ids, factors.items)
        who = _users(log, chosen, users, matrix.user_ids, factors.users, seed)
        progress.advance(1)
    rank = len(factors.values)
    manifest |= {
        "rank": rank,
        "product_rank": min(product_dim, rank),
        "queries": chosen,
        "matrix": {
            "rows": matrix.rows,
            "shape": list(matrix.clicks.shape),
            "cells": int(matrix.clicks.nnz),
            "share_of_clicks": matrix.used,
        },
        "never_clicked": int((np.linalg.norm(_matrix(found["vector"], rank), axis=1) == 0).sum()),
        "singular_values": [float(f"{s:.6g}") for s in factors.values],
    }
    features = Features(found, who, manifest)
    if out is not None:
        with tables.staged(out, overwrite=overwrite) as folder:
            tables.write_parquet(features.items, folder / "features.parquet")
            tables.write_parquet(features.users, folder / "user_features.parquet")
            tables.write_manifest(folder, manifest)
    return features


def wanted_manifest(
    log: Log,
    *,
    top_queries: int | None,
    queries: list[str] | None,
    items: int,
    dim: int,
    context: str,
    product_dim: int,
    users: int,
    same_log: bool,
    seed: int,
) -> tables.Manifest:
    """The manifest of the features that these arguments ask for."""
    check(context, items=items, dim=dim, product_dim=product_dim, users=users)
    arguments = {
        "queries": _queries(log, top_queries, queries),
        "items": items,
        "dim": dim,
        "context": context,
        "product_dim": product_dim,
        "users": users,
        "same_log": same_log,
        "seed": seed,
    }
    return tables.manifest_of("features", arguments, [{"log": log.identity}])


def check(context: str, **sizes: int) -> None:
    """Raise for arguments with which no features can be made."""
    if context not in CONTEXTS:
        raise unknown_names("context", [context], CONTEXTS)
    for name, value in sizes.items():
        if value < 1:
            raise LogevalError(f"{name}={value}: there must be at least one")
    if (dim := sizes.get("dim", 1)) > MOST_DIMENSIONS:
        raise LogevalError(f"dim={dim}: is too many; at most {MOST_DIMENSIONS:,}")


def read_features(folder: Path | str) -> Features:
    """The features that ``make_features`` wrote."""
    manifest = tables.read_manifest(folder)
    if manifest.get("stage") != "features":
        raise LogevalError(f"{folder}: holds no features; make them with `logeval features`")
    items = tables.read_table(Path(folder), "features")
    return Features(items, tables.read_table(Path(folder), "user_features"), manifest)


def _queries(log: Log, top: int | None, queries: list[str] | None) -> list[str]:
    if queries is None:
        return [str(q) for q in log.top_queries(3 if top is None else top)["query"]]
    with log.connect() as db:
        known = db.execute(
            "SELECT DISTINCT query_id, region_id FROM serps "
            f"WHERE NOT test AND ({sql_condition(queries)})"
        ).fetchall()
    names = {query_name(q, r) for q, r in known}
    if missing := [q for q in queries if q not in names]:
        raise LogevalError(f"{log.path}: there are no SERPs of query {missing[0]}")
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
    at = np.searchsorted(item_ids, ids).clip(max=len(item_ids) - 1)
    rows = np.where((item_ids[at] == ids)[:, None], vectors.scaled(at), 0.0)
    columns: dict[str, Any] = {
        "query_id": pa.array(shown["query_id"], from_pandas=True),
        "region_id": pa.array(shown["region_id"].astype("Int64"), from_pandas=True),
        "item_id": ids,
        "impressions": shown["impressions"].to_numpy(),
        "vector": _lists(rows),
    }
    return pa.table(columns).cast(tables.FEATURES)


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
    columns: dict[str, Any] = {"user_id": user_ids[at], "vector": _lists(vectors.scaled(at))}
    return pa.table(columns).cast(tables.USER_FEATURES)


def _lists(rows: Floats) -> pa.Array:
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.ListArray.from_arrays(offsets, np.ascontiguousarray(rows).ravel())


def _matrix(column: pa.ChunkedArray, d: int) -> Floats:
    flat = column.combine_chunks()
    flat = flat.chunk(0) if isinstance(flat, pa.ChunkedArray) and flat.num_chunks else flat
    values = np.asarray(flat.flatten()) if len(column) else np.empty(0)
    return values.reshape(len(column), d).astype(np.float64)
