"""The policies of all tracks of a PBM against each other, by the pair at the best position.

A list policy is judged by the item that it shows at the most examined position, a rank-1 policy
by its pair: both earn a click there, so their regrets are compared query by query like those of one
track. They are given as shares of what the best pairs earn on average, so that the mean over
queries is the ratio of means that ``Runs.relative`` has. Runs of two tracks meet different users,
so what pairs them is the query.
"""

from __future__ import annotations

import pandas as pd

from logeval.evaluation.statistics.paired import REPLICA
from logeval.evaluation.statistics.summary import pairs, summary

TRACK = "top pair"


def top_pair_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of one simulator at one step, with ``regret`` the share of the best pairs' mean reward.

    Empty unless the policies of several tracks were measured so. What runs in every track
    (Random, Oracle) is taken from the first.
    """
    rows = rows[rows["pair_regret"].notna() & (rows["pair_optimal_reward"] > 0.0)]
    if rows["track"].nunique() < 2:
        return rows.iloc[:0]
    rows = rows.drop_duplicates(["policy", *REPLICA])
    best = rows.groupby("query")["pair_optimal_reward"].mean().mean()
    share, optimal = rows["pair_regret"] / best, rows["pair_optimal_reward"] / best
    return rows.assign(regret=share, track=TRACK, optimal_reward=optimal, reward=optimal - share)


def compare_top_pairs(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """Summary and pairs (as ``Runs.summary`` and ``Runs.pairs``) of these shares, if any."""
    found = top_pair_rows(rows)
    if found.empty or found["policy"].nunique() < 2:
        return None
    return summary(found), pairs(found)
