"""Columns of a runs table as arrays (Q, N, ...): Q queries, N runs each, as the statistics want.

With draws of the simulators' parameters they are (Q, D, N, ...): D draws of each query.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from logeval.running.arrays import Floats

REPLICA = ["query", "draw", "run"]


def by_policy(rows: pd.DataFrame, column: str) -> tuple[list[str], Floats]:
    """Policies, and the values (Q, N, policies) of the replicas that all of them have."""
    wide = rows.pivot(index=REPLICA, columns="policy", values=column).dropna()
    return list(wide.columns), by_query(wide)


def by_step(rows: pd.DataFrame, column: str) -> Floats:
    """The values (Q, N, checkpoints) of one policy."""
    return by_query(rows.pivot(index=REPLICA, columns="t", values=column))


def by_query(wide: pd.DataFrame) -> Floats:
    """(Q, N, columns) from a frame indexed by query, draw and run, padded with nan.

    (Q, D, N, columns) if there are draws; without, the draw is 0 everywhere.
    """
    by_draw = wide.groupby(level=["query", "draw"], sort=True)
    query = wide.groupby(level="query", sort=True).ngroup().to_numpy()
    draw, run = by_draw.ngroup().to_numpy(), by_draw.cumcount().to_numpy()
    first = np.full(query.max() + 1, draw.max())
    np.minimum.at(first, query, draw)
    draw = draw - first[query]  # counted within its query
    x = np.full((len(first), draw.max() + 1, run.max() + 1, wide.shape[1]), np.nan)
    x[query, draw, run] = wide.to_numpy(dtype=float)
    drawn = wide.index.get_level_values("draw").max() > 0
    return x if drawn else x[:, 0]
