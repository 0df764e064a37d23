"""Click models fitted to the log: what they predict on its lists, and the value of a target.

Models are fitted to whole lists, also when only the first K positions count: what was clicked
further down says something about items that the target moves up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.fitted import FittedModel
from logeval.clicks.fitting import fit_one
from logeval.clicks.models.registry import MODELS, model_names
from logeval.clicks.quality.scores import local_items
from logeval.errors import LogevalError
from logeval.log.queries import Query
from logeval.replay.targets import MarginalTarget, Target
from logeval.running.arrays import Floats, Ints, sum_by

CELL_MODELS = ("GCTR", "RCTR", "DCTR", "PBM")  # a click depends on item and position alone


@dataclass(frozen=True)
class Prediction:
    """One model: click probabilities on the log's lists, and of the target."""

    clicks: Floats  # (P, K)
    value: Floats  # (Q,) expected clicks of the target


def fit(name: str, patterns: Patterns, weight: Floats, scope: str) -> FittedModel:
    """A click model fitted to the patterns with these numbers of SERPs."""
    name = model_names([name])[0]
    used = weight > 0
    data = replace(patterns, count=weight.astype(np.float64)).take(used)
    methods = MODELS[name].methods
    method = "em" if "em" in methods else methods[0]  # exact; counting is biased (DCM, SDBN)
    return fit_one(name, data, Options(method, scope))


def predict(fitted: FittedModel, patterns: Patterns, target: Target) -> Prediction:
    """What the model says of the log's lists, cut to the target's positions, and of the target."""
    if isinstance(target, MarginalTarget) and fitted.model not in CELL_MODELS:
        raise LogevalError(
            f"target {target.name}: it gives probabilities per rank, and {fitted.model} needs "
            f"whole lists; use a model of item and position ({', '.join(CELL_MODELS)})"
        )
    K = target.K
    logged = click_probabilities(
        fitted, patterns.queries, patterns.query, patterns.items[:, :K], patterns.item_ids
    )
    query, items, probability = target.lists()
    clicks = click_probabilities(fitted, patterns.queries, query, items, target.item_ids)
    return Prediction(logged, sum_by(query, probability * clicks.sum(axis=1), target.Q))


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


def examination(fitted: FittedModel, queries: list[Query], K: int) -> Floats:
    """e of a fitted PBM, (Q, K)."""
    return np.stack([fitted.of(query, unseen=True, K=K).e for query in queries])  # type: ignore[attr-defined]
