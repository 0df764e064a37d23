"""How often each position is examined: the propensity of a click to be possible at all.

P(examined k) = P(clicked k) / attraction of the item there, for every click model, on average over
the lists that the log showed (a PBM's does not depend on them). Where examination depends on the
previous click (UBM), it is given for each position and previous click as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from logeval.clicks.collection import FittedModels
from logeval.clicks.estimation.estimates import ParameterEstimate
from logeval.clicks.estimation.posterior import interval
from logeval.clicks.fitted import FittedModel
from logeval.clicks.models.model import ClickModel
from logeval.clicks.models.users.mixture import classes_of
from logeval.clicks.naming import Naming
from logeval.errors import LogevalError
from logeval.log.queries import Query
from logeval.running.arrays import Floats, Ints

LEAST = 1e-12  # an item that is never clicked is examined all the same
FEWEST_DRAWS = 10
MOST_LISTS = 2_000  # of a query, the most shown


def propensities_of(
    models: FittedModels, fitted: FittedModel, per_query: bool, naming: Naming
) -> pd.DataFrame:
    """One row per position (and previous click), of all queries together or of each."""
    shown = {query: _lists(models, fitted, query) for query in fitted.queries}
    if all(A is None for A in shown.values()):
        raise LogevalError(
            f"{fitted.model}: examination depends on the lists that were shown, and these models "
            "have none beside them; fit them to a log, or choose pbm"
        )
    draws = fitted.some_draws(fitted.n_draws) if fitted.n_draws >= FEWEST_DRAWS else []
    whole = [_marginals(each, shown) for each in (fitted, *draws)]  # each (Q, K), nan without
    names = naming.queries(fitted.queries)
    if per_query:
        groups = {names[q]: [one[q] for one in whole] for q in range(len(names))}
    else:
        weight = np.nan_to_num(fitted.serps, nan=1.0)[:, None]
        groups = {None: [_mean(one, weight) for one in whole]}  # type: ignore[dict-item]
    rows: list[dict[str, Any]] = []
    for name, values in groups.items():
        value = values[0][~np.isnan(values[0])]
        drawn = [one[: len(value)] for one in values[1:]]
        rows += _rows(name, _with_interval(value, np.array(drawn)))
    rows += _given_previous(fitted, per_query, names)
    return pd.DataFrame(rows, columns=COLUMNS).astype({"position": int, "previous": "Int64"})


COLUMNS = ["query", "position", "previous", "examination", "low", "high", "weight"]


def examination(model: ClickModel, A: Ints) -> Floats:
    """P(examined k) of each list of rows, (n, K)."""
    share, classes = classes_of(model.users)
    seen = 0.0
    for part, users in zip(share, classes, strict=True):
        w = np.maximum(users.w, LEAST)
        seen = seen + part * replace(users, w=w).click_probs(A) / w[A]
    return np.asarray(seen)


def _lists(models: FittedModels, fitted: FittedModel, query: Query) -> tuple[Ints, Floats] | None:
    """The lists of a query and how often they were shown; any list where it does not matter."""
    own = fitted.of(query)
    K = min(own.K, own.L)
    ranker = None if models.lists is None else models.lists.ranker(query, own.items, K)
    if ranker is not None:
        p = ranker.p[:MOST_LISTS]
        return ranker.A[:MOST_LISTS], p / p.sum()
    own_positions = any(p[1:] == ("examination", "position") for p in fitted.kind.PARAMETERS)
    return (np.arange(K)[None], np.ones(1)) if own_positions else None


def _marginals(fitted: FittedModel, shown: dict[Query, Any]) -> Floats:
    """P(examined k) of every query, (Q, K); nan where it has no such position, or no lists."""
    found = np.full((len(fitted.queries), int(fitted.positions.max(initial=1))), np.nan)
    for q, query in enumerate(fitted.queries):
        if shown[query] is not None:
            A, p = shown[query]
            found[q, : A.shape[1]] = p @ examination(fitted.of(query), A)
    return found


def _mean(values: Floats, weight: Floats) -> Floats:
    """Over the queries that have a position, by their SERPs."""
    there = ~np.isnan(values)
    total = (weight * there).sum(axis=0)
    mean = (weight * np.where(there, values, 0.0)).sum(axis=0) / np.maximum(total, 1e-300)
    return np.where(total > 0.0, np.minimum(mean, 1.0), np.nan)  # rounding


def _with_interval(value: Floats, draws: Floats) -> ParameterEstimate:
    if not len(draws):
        return ParameterEstimate.known(value)
    mean = draws.mean(axis=0)
    square = mean**2 + draws.var(axis=0, ddof=1)
    return interval(value, mean, square, np.full(len(value), np.nan), draws)


def _rows(query: str | None, x: ParameterEstimate) -> list[dict[str, Any]]:
    return [
        {
            "query": query,
            "position": k + 1,
            "previous": None,
            "examination": x.value[k],
            "low": x.low[k],
            "high": x.high[k],
            "weight": x.value[0] / max(x.value[k], LEAST),
        }
        for k in range(len(x.value))
    ]


def _given_previous(fitted: FittedModel, per_query: bool, names: list[str]) -> list[dict[str, Any]]:
    """The UBM's own parameters: by position and previous click (0: none)."""
    found = [p for p in fitted.kind.PARAMETERS if p.kind == "transition"]
    if not found or len(fitted.classes) > 1:
        return []
    parts: list[tuple[str | None, ParameterEstimate, int]] = []
    if per_query:
        for name, query, n in zip(names, fitted.queries, fitted.positions, strict=True):
            parts.append((name, fitted.estimate(found[0], query), int(n)))
    else:
        x, K = fitted.estimates[found[0].field], int(fitted.positions.max(initial=1))
        by = np.ones((1, K))  # one set of values for all queries
        if fitted.scope != "pooled":
            by = np.nan_to_num(fitted.serps, nan=1.0)[:, None] * (
                np.arange(K) < fitted.positions[:, None]
            )
        share = by / np.maximum(by.sum(axis=0), 1e-300)

        def mean(value: Floats) -> Floats:
            flat: Floats = np.einsum("gk,gkr->kr", share, np.nan_to_num(value)).ravel()
            return flat

        draws = [] if x.draws is None else [mean(draw) for draw in x.draws]
        whole = _with_interval(mean(x.value), np.array(draws))
        parts.append((None, whole.map(lambda v: v.reshape(K, -1)), K))
    return [
        {
            "query": name,
            "position": k + 1,
            "previous": r,
            "examination": part.value[k, r],
            "low": part.low[k, r],
            "high": part.high[k, r],
            "weight": part.value[0, 0] / max(part.value[k, r], LEAST),
        }
        for name, part, n in parts
        for k in range(n)
        for r in range(k + 1)
    ]
