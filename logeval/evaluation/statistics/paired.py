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
    queries = [group for _, group in wide.groupby(level="query", sort=True)]
    found = [
        [draw.to_numpy(dtype=float) for _, draw in query.groupby(level="draw", sort=True)]
        for query in queries
    ]
    D = max(len(draws) for draws in found)
    N = max(len(runs) for draws in found for runs in draws)
    x = np.full((len(found), D, N, wide.shape[1]), np.nan)
    for q, draws in enumerate(found):
        for d, runs in enumerate(draws):
            x[q, d, : len(runs)] = runs
    drawn = wide.index.get_level_values("draw").max() > 0
    return x if drawn else x[:, 0]
