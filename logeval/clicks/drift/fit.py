"""Click models by period, each shrunk towards its neighbours.

The model of period j is fitted to all SERPs, those of a period i with the weight rho^|i - j|: with
rho = 1 it is the constant model, with a small rho each period speaks for itself. Each query has the
rho that predicts its held-out SERPs best, and rho = 1 unless these show that its users change, or
those of the log as a whole (``drift.evidence``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from logeval.clicks.drift.evidence import Evidence, evidence
from logeval.clicks.drift.fold import ByPeriod
from logeval.clicks.estimation.estimates import ParameterEstimate
from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.fitted import FittedModel
from logeval.clicks.quality.scores import score_model
from logeval.running import seeds
from logeval.running.arrays import Bools, Floats, Ints, sum_by

RHO = (0.05, 0.3, 0.7, 0.95)  # and 1, the constant model
NAMED = 20  # queries that a report names


@dataclass(frozen=True)
class Drift:
    """The models of the periods, and what is known of the change."""

    models: tuple[FittedModel, ...]
    queries: Evidence  # of each query
    log: Evidence  # of all SERPs together
    report: dict[str, Any]


def fit_by_period(
    fit: Callable[[Patterns], FittedModel],
    data: ByPeriod,
    tick: Callable[[int], None],
    seed: int = 0,
) -> Drift:
    """``fit`` fits a model to patterns; ``tick`` hears of every fit."""
    constant = fit(data.train)
    tick(1)
    P, held_out, count = len(data.periods), data.held_out, data.held_out.count
    serp = np.repeat(np.arange(data.train.P), data.train.count.astype(np.int64))
    period = data.train_period[serp]
    fitted: list[list[FittedModel]] = []
    scores = np.empty((2, len(RHO) + 1, held_out.P))  # as they are, and with exchanged periods
    scores[:, -1] = log_likelihood(constant, held_out)
    for way, of_serp in enumerate((period, exchanged(data.train, serp, period, seed))):
        for c, rho in enumerate(RHO):
            each = []
            for j in range(P):
                weight = sum_by(serp, rho ** np.abs(of_serp - j), data.train.P)
                each.append(fit(data.train.weighted(weight)))
                mine = np.flatnonzero(data.held_out_period == j)
                scores[way, c, mine] = log_likelihood(each[-1], held_out.take(mine))
                tick(1)
            fitted.append(each)
    place = np.array([constant.index.get(q, -1) for q in held_out.queries], dtype=np.int64)
    group = place[held_out.query]
    seen = group >= 0  # whatever was never fitted says nothing
    Q = len(constant.queries)
    own, other = scores
    queries = evidence(own[:, seen], other[:, seen], count[seen], group[seen], data.half[seen], Q)
    log = evidence(own, other, count, np.zeros(held_out.P, np.int64), data.half, 1)
    follows = queries.drifts | (queries.enough & log.drifts[0])
    choice = np.where(follows, queries.choice, len(RHO))
    by_rho = fitted[: len(RHO)]
    models = tuple(
        replace(_chosen([each[j] for each in by_rho] + [constant], choice), shown=shown)
        for j, shown in enumerate(shown_by_period(data, constant))
    )
    return Drift(models, queries, log, _report(constant, data, queries, log, choice))


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
    return 1 + 2 * len(RHO) * periods


def exchanged(data: Patterns, serp: Ints, period: Ints, seed: int) -> Ints:
    """The periods of SERPs (of pattern ``serp``), exchanged among those that show the same list."""
    lists = np.unique(data.items, axis=0, return_inverse=True)[1].ravel()[serp]
    rng = seeds.generator(seed, "exchanged periods")
    found = np.empty_like(period)
    found[np.argsort(lists, kind="stable")] = period[np.lexsort((rng.random(len(serp)), lists))]
    return found


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
    model: FittedModel, data: ByPeriod, queries: Evidence, log: Evidence, choice: Ints
) -> dict[str, Any]:
    """What the manifest says."""
    drifting = np.flatnonzero(queries.drifts)
    by_gain = drifting[np.argsort(-queries.gain[drifting], kind="stable")]
    rho = (*RHO, 1.0)
    return {
        "periods": [str(period) for period in data.periods],
        "log_drifts": bool(log.drifts[0]),
        "log_gain": float(log.gain[0]),
        "queries_tested": int(queries.enough.sum()),
        "queries_drifting": len(drifting),
        "serps_drifting": float(model.serps[drifting].sum() / max(model.serps.sum(), 1.0)),
        "queries": [
            {"query": str(model.queries[q]), "rho": rho[choice[q]], "gain": float(queries.gain[q])}
            for q in by_gain[:NAMED]
        ],
    }
