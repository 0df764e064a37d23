"""A bandit ahead of today's ranker, and what it would earn and cost in the place of a test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from logeval.clicks.collection import FittedModels
from logeval.evaluation.evaluate import evaluate
from logeval.log.queries import Query
from logeval.planning.rankers import AFTER, RUNS_AFTER
from logeval.running.arrays import Floats
from logeval.tracks.fitted import FittedQuery

if TYPE_CHECKING:
    from logeval.planning.plan import Plan

RUNS = 4
STEPS = 20  # parts of the traffic, after which is counted
MOST = 200_000  # searches of a query; with more traffic, this much of it


class Ends(NamedTuple):
    """A difference with its 95% interval."""

    mean: float
    low: float
    high: float


def learned(rankers: Sequence[str]) -> str | None:
    """The policy after some steps that is compared with today's ranker, if this is the question."""
    others = [ranker for ranker in rankers if ranker != "logged"]
    return others[0] if len(others) == 1 and AFTER.fullmatch(others[0]) else None


def ahead_of_today(
    asked: Plan,
    models: FittedModels,
    queries: Sequence[FittedQuery],
    traffic: Floats,
    metric: str,
    text: str,
    draws: int,
) -> Ends:
    """What the verdict of ``evaluate`` says of the policy at the end of its steps, by the traffic.

    On every draw it learns from the users that judge it, as it would from those of the log.
    """
    policy, _, steps = text.rpartition("@")
    runs = evaluate(
        models,
        policies=[policy],
        horizon=int(steps),
        draws=draws,
        runs=1 if draws else RUNS_AFTER,
        positions=queries[0].K,
        queries=[Query.of(f.query) for f in queries],
        reward=metric,
        seed=asked.seed,
        quiet=asked.quiet,
    )
    share = dict(zip((f.query for f in queries), traffic.tolist(), strict=True))
    row = runs.against_ranker(traffic=share).iloc[0]
    ahead, *ends = (float(row[name]) for name in ("ahead", "ahead_low", "ahead_high"))
    low, high = ends if draws else (math.nan, math.nan)  # of what the log leaves open
    return Ends(ahead, low, high) if text == str(asked.treatment) else Ends(-ahead, -high, -low)


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
