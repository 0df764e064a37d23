"""The sparse matrix of clicks: A[i, j] is how often user i clicked item j (gl-cdcm, section 4.2).

DuckDB counts straight from the Parquet files, within a memory limit and on disk beyond it, so
only the cells that are not 0 ever come into memory. Where the log has no users, a row is a
session. Test SERPs never enter; repeat clicks count once, as everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import numpy as np
from scipy import sparse

from logeval.arrays import Ints
from logeval.errors import LogevalError
from logeval.log.log import Log

USER, SESSION = "user", "session"
CHUNK = 1 << 16  # rows that DuckDB hands over at a time


@dataclass(frozen=True)
class ClickMatrix:
    """Clicks of users (or sessions) on items."""

    clicks: sparse.csr_array  # (users, items)
    rows: str  # what a row is: user or session
    user_ids: Ints
    item_ids: Ints


def click_matrix(log: Log, condition: str = "true") -> ClickMatrix:
    """The click matrix of the SERPs that fulfil an SQL condition."""
    with log.connect() as db:
        db.execute(f"CREATE VIEW used AS SELECT * FROM serps WHERE NOT test AND ({condition})")
        ((users,),) = db.execute("SELECT count(user_id) FROM used").fetchall()
        rows = USER if users else SESSION
        cells = db.sql(
            f"""
            SELECT {rows}_id AS u, item, count(*) AS n
            FROM (
                SELECT {rows}_id, unnest(items) AS item, unnest(clicks) AS c FROM used
            )
            WHERE c > 0 AND {rows}_id IS NOT NULL
            GROUP BY ALL ORDER BY u, item
            """
        )
        parts = [(b["u"], b["item"], b["n"]) for b in _batches(cells)]
    if not parts:
        raise LogevalError(f"{log.path}: there is no click to make features from")
    user, item, n = (
        np.concatenate([np.asarray(part[i], dtype=np.int64) for part in parts]) for i in range(3)
    )
    user_ids, u = np.unique(user, return_inverse=True)
    item_ids, j = np.unique(item, return_inverse=True)
    shape = (len(user_ids), len(item_ids))
    clicks = sparse.csr_array((n.astype(np.float64), (u, j)), shape=shape)
    return ClickMatrix(clicks, rows, user_ids, item_ids)


def _batches(result: duckdb.DuckDBPyRelation) -> list[dict[str, np.ndarray]]:
    batches = result.to_arrow_reader(CHUNK)
    return [
        {name: batch.column(i).to_numpy() for i, name in enumerate(batch.schema.names)}
        for batch in batches
        if batch.num_rows
    ]
