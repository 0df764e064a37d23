"""Columns of a runs table as arrays (Q, N, ...): Q queries, N runs each, as the statistics want."""

from __future__ import annotations

import numpy as np
import pandas as pd

from logeval.arrays import Floats


def by_policy(rows: pd.DataFrame, column: str) -> tuple[list[str], Floats]:
    """Policies, and the values (Q, N, policies) of the replicas that all of them have."""
    wide = rows.pivot(index=["query", "run"], columns="policy", values=column).dropna()
    return list(wide.columns), by_query(wide)


def by_step(rows: pd.DataFrame, column: str) -> Floats:
    """The values (Q, N, checkpoints) of one policy."""
    return by_query(rows.pivot(index=["query", "run"], columns="t", values=column))


def by_query(wide: pd.DataFrame) -> Floats:
    """(Q, N, columns) from a frame indexed by query and run, padded with nan."""
    groups = [g.to_numpy(dtype=float) for _, g in wide.groupby(level="query", sort=True)]
    x = np.full((len(groups), max(len(g) for g in groups), wide.shape[1]), np.nan)
    for q, group in enumerate(groups):
        x[q, : len(group)] = group
    return x
