"""Lists in random order as the truth: models fitted to the ranked lists predict their clicks.

No ranker's habits can flatter a model there. Of every model: clicks per search in the log and
predicted, the share of queries, of ranks of queries, and of items, whose clicks are within the 95%
interval of the prediction (``RARE`` SERPs at least), and how often, of two such SERPs of a query
with unlike numbers of clicks, the one that has more is predicted to have more. An interval has the
spread of the model's draws in it, and that of the clicks.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.fitted import FittedModel
from logeval.clicks.quality.scores import alike, local_items
from logeval.log.log import Log
from logeval.running.arrays import Bools, Floats, Ints, sum_by

RARE = 30  # SERPs, or impressions, with fewer of which there is no interval
PAIRS = 300  # patterns of a query whose order is looked at
NORMAL = 1.959964


def against_randomised(models: Mapping[str, FittedModel], test: Patterns) -> pd.DataFrame:
    """A row per model."""
    return pd.DataFrame([{"model": name, **_row(one, test)} for name, one in models.items()])


def how_to_say(log: Log) -> str:
    """What a log must say, for lists in random order to be found; why propensities are not it."""
    with log.connect() as db:
        known = db.execute("SELECT count(*) FROM serps WHERE propensities IS NOT NULL").fetchone()
    more = ""
    if known is not None and known[0]:
        more = (
            "; its propensities are of single results, which do not say how likely a whole list "
            "was, so lists cannot be weighed by them. Mark those that were drawn in random order, "
            "or estimate with `replay estimate --propensities logged`"
        )
    return f"the log must say which lists were in random order, in a column `random`{more}"


def _row(fitted: FittedModel, test: Patterns) -> dict[str, float]:
    draws = fitted.some_draws(40)
    predicted = np.stack([_predicted(one, test) for one in [fitted, *draws]])  # (1 + D, P, K)
    shown = test.shown
    flat = predicted[:, shown.pattern, shown.position]
    clicks = test.clicks.sum(axis=1).astype(np.float64)
    all_one = np.zeros(test.P, dtype=np.int64)
    total = _within(predicted.sum(axis=2), clicks, test.count, all_one, 1, whole=True)
    by_query = _within(predicted.sum(axis=2), clicks, test.count, test.query, test.Q, whole=True)
    place = shown.query * test.K + shown.position
    by_rank = _within(flat, shown.clicked, shown.count, place, test.Q * test.K)
    by_item = _within(flat, shown.clicked, shown.count, shown.item, test.I)
    return {
        "serps": int(test.count.sum()),
        "clicks": total["seen"][0],
        "predicted": total["mean"][0],
        "low": total["mean"][0] - total["half"][0],
        "high": total["mean"][0] + total["half"][0],
        "queries_within": _share(by_query),
        "ranks_within": _share(by_rank),
        "items_within": _share(by_item),
        "order": _concordance(predicted[0].sum(axis=1), clicks, test),
    }


def _predicted(fitted: FittedModel, test: Patterns) -> Floats:
    """P(click) at every position of every pattern, (P, K)."""
    found = np.zeros(test.items.shape)
    for query, K, rows in alike(test):
        model = fitted.of(query, unseen=True, K=test.K)
        A = local_items(model.items, test.item_ids[test.items[rows, :K]])
        found[rows, :K] = model.click_probs_of_rows(A)
    return found


def _within(
    predicted: Floats, seen: Floats | Bools, count: Floats, group: Ints, n: int, whole: bool = False
) -> dict[str, Floats]:
    """Means of groups in the log and predicted, and half of the interval around the latter.

    ``whole`` clicks of a SERP vary as they do in the log, single ones as their probability says.
    """
    size = sum_by(group, count, n)
    safe = np.maximum(size, 1e-300)
    mean = np.stack([sum_by(group, count * one, n) / safe for one in predicted])
    observed = sum_by(group, count * seen, n) / safe
    if whole:
        square = sum_by(group, count * seen**2, n) / safe
        spread = np.maximum(square - observed**2, 0.0) / np.maximum(size - 1, 1.0)
    else:
        p = predicted[0]
        spread = sum_by(group, count * p * (1 - p), n) / safe**2
    drawn = mean[1:].var(axis=0, ddof=1) if len(mean) > 2 else np.zeros(n)
    return {"mean": mean[0], "seen": observed, "half": NORMAL * np.sqrt(spread + drawn), "n": size}


def _share(found: dict[str, Floats]) -> float:
    """How many groups are within their interval."""
    often = found["n"] >= RARE
    held = np.abs(found["seen"] - found["mean"]) <= found["half"]
    return float(held[often].mean()) if often.any() else np.nan


def _concordance(predicted: Floats, clicks: Floats, test: Patterns) -> float:
    """Of pairs of SERPs of a query with unlike clicks, those in the right order; ties are half."""
    right = pairs = 0.0
    for q in range(test.Q):
        mine = np.flatnonzero(test.query == q)[:PAIRS]
        more = clicks[mine][:, None] > clicks[mine]
        weight = more * np.outer(test.count[mine], test.count[mine])
        gap = predicted[mine][:, None] - predicted[mine]
        right += float((weight * ((gap > 1e-12) + 0.5 * (np.abs(gap) <= 1e-12))).sum())
        pairs += float(weight.sum())
    return right / pairs if pairs else np.nan
