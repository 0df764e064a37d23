"""A bandit in the traffic of an A/B test: what it would earn, and cost on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from logeval.clicks.collection import FittedModels
from logeval.evaluation.evaluate import evaluate
from logeval.log.queries import Query
from logeval.running.arrays import Floats
from logeval.tracks.fitted import FittedQuery

if TYPE_CHECKING:
    from logeval.planning.plan import Plan

RUNS = 4
STEPS = 20  # parts of the traffic, after which is counted
MOST = 200_000  # searches of a query; with more traffic, this much of it


def in_its_place(
    asked: Plan,
    models: FittedModels,
    queries: Sequence[FittedQuery],
    traffic: Floats,
    n: float,
    metric: str,
    control: Floats,
) -> dict[str, Any]:
    """Earnings above those of the control ranker (Q,) on all searches, in units of the metric.

    Each query has its share of the traffic, from the first search to the last at an even pace.
    """
    n = min(n, MOST / traffic.max())
    ends = np.maximum(np.ceil(n * traffic), 1).astype(int)  # searches of each query
    at = np.maximum(np.ceil(np.outer(ends, np.arange(1, STEPS + 1) / STEPS)), 1).astype(int)
    runs = evaluate(
        models,
        policies=[asked.bandit or ""],
        horizon=int(ends.max()),
        checkpoints=np.unique(at).tolist(),
        runs=RUNS,
        positions=queries[0].K,
        queries=[Query.of(f.query) for f in queries],  # by their ids, not names
        reward=metric,
        seed=asked.seed,
        quiet=asked.quiet,
    ).table()
    earned = np.zeros((RUNS, STEPS))
    for q, f in enumerate(queries):
        mine = runs[runs["query"] == f.query].pivot(index="run", columns="t", values="reward")
        earned += mine[at[q].tolist()].to_numpy() - at[q] * control[q]
    ahead = earned.mean(axis=0)
    return {
        "policy": str(runs["policy"].iloc[0]),
        "searches": int(ends.sum()),
        "earned": float(ahead[-1]),
        "stderr": float(earned[:, -1].std(ddof=1) / np.sqrt(RUNS)),
        "lowest": float(min(ahead.min(), 0.0)),
        "lowest_at": int(n * (int(ahead.argmin()) + 1) / STEPS) if ahead.min() < 0 else 0,
    }
