"""What fitted click models predict on the log's lists, and the value of a target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.fitted import FittedModel
from logeval.clicks.quality.scores import local_items
from logeval.errors import LogevalError
from logeval.log.queries import Query
from logeval.replay.estimators.estimator import OF_CELLS
from logeval.replay.targets.target import MarginalTarget, Target
from logeval.running.arrays import Floats, Ints, sum_by


@dataclass(frozen=True)
class Prediction:
    """One model: click probabilities on the log's lists, and of the target."""

    clicks: Floats  # (P, K)
    value: Floats  # (Q,) expected clicks of the target
    e: Floats | None = None  # (Q, K) examination, of a PBM


def predict(fitted: FittedModel, patterns: Patterns, target: Target) -> Prediction:
    """What the model says of the log's lists, cut to the target's positions, and of the target."""
    if isinstance(target, MarginalTarget) and fitted.kind.name not in OF_CELLS:
        raise LogevalError(
            f"target {target.name}: it gives probabilities per rank, and {fitted.model} needs "
            f"whole lists; use a model of item and position ({', '.join(OF_CELLS)})"
        )
    K, queries = target.K, patterns.queries
    logged = click_probabilities(
        fitted, queries, patterns.query, patterns.items[:, :K], patterns.item_ids
    )
    query, items, probability = target.lists()
    clicks = click_probabilities(fitted, queries, query, items, target.item_ids)
    value = sum_by(query, probability * clicks.sum(axis=1), target.Q)
    e = None
    if fitted.model == "PBM":
        e = np.stack([fitted.of(q, unseen=True, K=K).e for q in queries])  # type: ignore[attr-defined]
    return Prediction(logged, value, e)


def click_probabilities(
    fitted: FittedModel, queries: list[Query], query: Ints, items: Ints, item_ids: Ints
) -> Floats:
    """P(c_k = 1) of lists (n, K) of numbered items; 0 where a list has none."""
    K = items.shape[1]
    out = np.zeros(items.shape)
    order = np.argsort(query, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(query[order])) + 1):
        if not len(rows):
            continue
        model = fitted.of(queries[query[rows[0]]], unseen=True, K=K)
        A = local_items(model.items, item_ids[items[rows]])  # beyond the end any item will do
        # a click never depends on what stands below it
        out[rows] = model.click_probs_of_rows(A)
    out[items < 0] = 0.0
    return out
