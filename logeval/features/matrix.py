"""The sparse matrix of clicks: A[i, j] is how often user i clicked item j (gl-cdcm, section 4.2).

DuckDB counts straight from the Parquet files, within a memory limit and on disk beyond it, so
only the cells that are not 0 ever come into memory. Where the log has no users, a row is a
session. Test SERPs never enter; repeat clicks count once, as everywhere.

Where users and items are both more than ``MOST``, only the items that were clicked most enter, so
that the memory of the decomposition is bounded; ``used`` says what share of the clicks they have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import numpy as np
from scipy import sparse

from logeval.errors import LogevalError
from logeval.log.log import Log
from logeval.running.arrays import Ints

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
