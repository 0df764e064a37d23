"""Click models by period, each shrunk towards its neighbours.

The model of period j is fitted to all SERPs, those of a period i with the weight rho^|i - j|: with
rho = 1 it is the constant model, with a small rho each period speaks for itself. Each query has the
rho that predicts its held-out SERPs best, and rho = 1 unless its users change, or those of the log
as a whole (``drift.change``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from logeval.clicks.drift.change import Change, changes_of
from logeval.clicks.drift.fold import ByPeriod
from logeval.clicks.estimation.estimates import ParameterEstimate
from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.fitted import FittedModel
from logeval.clicks.quality.scores import score_model
from logeval.running.arrays import Bools, Floats, Ints, sum_by

RHO = (0.05, 0.3, 0.7, 0.95)  # and 1, the constant model
NAMED = 20  # queries that a report names


@dataclass(frozen=True)
class Drift:
    """The models of the periods, and what is known of the change."""

    models: tuple[FittedModel, ...]
    queries: Change  # of each query
    log: Change  # of all SERPs together
    report: dict[str, Any]


def fit_by_period(
    fit: Callable[[Patterns], FittedModel], data: ByPeriod, tick: Callable[[int], None]
) -> Drift:
    """``fit`` fits a model to patterns; ``tick`` hears of every fit."""
    constant = fit(data.train)
    tick(1)
    P, held_out, count = len(data.periods), data.held_out, data.held_out.count
    serp = np.repeat(np.arange(data.train.P), data.train.count.astype(np.int64))
    period = data.train_period[serp]
    by_rho: list[list[FittedModel]] = []
    scores = np.empty((len(RHO) + 1, held_out.P))
    scores[-1] = log_likelihood(constant, held_out)
    for c, rho in enumerate(RHO):
        each = []
        for j in range(P):
            weight = sum_by(serp, rho ** np.abs(period - j), data.train.P)
            each.append(fit(data.train.weighted(weight)))
            mine = np.flatnonzero(data.held_out_period == j)
            scores[c, mine] = log_likelihood(each[-1], held_out.take(mine))
            tick(1)
        by_rho.append(each)
    place = np.array([constant.index.get(q, -1) for q in held_out.queries], dtype=np.int64)
    group = place[held_out.query]
    seen = group >= 0  # whatever was never fitted says nothing
    Q = len(constant.queries)
    sums = np.stack([sum_by(group[seen], (x * count)[seen], Q) for x in scores])
    every, log = changes_of(data.strata)
    at = {query: i for i, query in enumerate(data.strata.queries)}
    rows = [at[query] for query in constant.queries]
    queries = replace(every, p=every.p[rows], power=every.power[rows])
    choice = np.where(queries.found | log.found[0], sums.argmax(axis=0), len(RHO))
    models = tuple(
        replace(_chosen([each[j] for each in by_rho] + [constant], choice), shown=shown)
        for j, shown in enumerate(shown_by_period(data, constant))
    )
    serps = sum_by(group[seen], count[seen], Q)
    gain = (sums[choice, np.arange(Q)] - sums[-1]) / np.maximum(serps, 1.0)
    return Drift(models, queries, log, _report(constant, data, queries, log, choice, gain))


def shown_by_period(data: ByPeriod, model: FittedModel) -> Bools:
    """(periods, I) whether the log showed an item of the model in a period, held out or not."""
    pairs = zip(model.item_query.tolist(), model.item_ids.tolist(), strict=True)
    place = {(model.queries[q], item): i for i, (q, item) in enumerate(pairs)}
    found = np.zeros((len(data.periods), len(place)), dtype=np.bool_)
    for part, period in (
        (data.train, data.train_period),
        (data.held_out, data.held_out_period),
    ):
        mine = zip(part.item_query.tolist(), part.item_ids.tolist(), strict=True)
        at = np.array([place.get((part.queries[q], item), -1) for q, item in mine], np.int64)
        rows, items = period[part.shown.pattern], at[part.shown.item]
        found[rows[items >= 0], items[items >= 0]] = True
    return found


def fits_of(periods: int) -> int:
    """How many fits that takes."""
    return 1 + len(RHO) * periods


def log_likelihood(fitted: FittedModel, data: Patterns) -> Floats:
    """Of each pattern, in nats."""
    score = score_model(fitted, data)
    total: Floats = np.log(2.0) * np.where(score.shown, score.conditional, 0.0).sum(axis=1)
    return total


def _chosen(candidates: Sequence[FittedModel], choice: Ints) -> FittedModel:
    """Each query with the parameters of the candidate that it has chosen."""
    first = candidates[-1]
    of_item = choice[first.item_query]
    items = {p.field for p in first.kind.PARAMETERS if p.kind == "item"}

    def of(name: str) -> ParameterEstimate:
        at = of_item if name in items else choice
        rows = np.arange(len(at))
        parts = [c.estimates[name] for c in candidates]
        taken = {
            key: np.stack([getattr(part, key) for part in parts])[at, rows]
            for key in ("value", "low", "high", "observations", "raw")
            if getattr(parts[-1], key) is not None
        }
        return replace(parts[-1], draws=None, **taken)

    return replace(first, estimates={name: of(name) for name in first.estimates})


def _report(
    model: FittedModel, data: ByPeriod, queries: Change, log: Change, choice: Ints, gain: Floats
) -> dict[str, Any]:
    """What the manifest says."""
    drifting = np.flatnonzero(queries.found)
    by_gain = drifting[np.argsort(-gain[drifting], kind="stable")]
    rho = (*RHO, 1.0)
    return {
        "periods": [str(period) for period in data.periods],
        "log_drifts": bool(log.found[0]),
        "log": log.record(),
        "queries_tested": int(queries.tested.sum()),
        "queries_drifting": len(drifting),
        "serps_drifting": float(model.serps[drifting].sum() / max(model.serps.sum(), 1.0)),
        "queries": [
            {"query": str(model.queries[q]), "rho": rho[choice[q]], "gain": float(gain[q])}
            for q in by_gain[:NAMED]
        ],
    }
