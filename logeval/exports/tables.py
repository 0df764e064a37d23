"""How often each position is examined: the propensity of a click to be possible at all.

P(examined k) = P(clicked k) / attraction of the item there, for every click model, on average over
the lists that the log showed (a PBM's does not depend on them). Where examination depends on the
previous click (UBM), it is given for each position and previous click as well.

Propensities from interventions: items that the log showed at several positions.

Examination relative to the first position, whatever attracts (``clicks.support.harvesting``),
beside what the model says of it. A position that swaps do not tie to the first is blank.

Graded relevance of (query, item) pairs, each with what it rests on.

The relevance of an item is its attraction (clicked when examined), its satisfaction (the search
ends there, given the click: SDBN and DBN), or the product of both. Its grade is the number of
thresholds that it reaches. An item is *uncertain* when the two ends of its 95% interval have
different grades: another log of this size might have graded it otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from logeval.clicks.collection import FittedModels
from logeval.clicks.estimation.estimates import ParameterEstimate
from logeval.clicks.estimation.fold import fold
from logeval.clicks.estimation.patterns import Patterns, patterns_of
from logeval.clicks.estimation.posterior import interval
from logeval.clicks.fitted import FittedModel
from logeval.clicks.models.model import ClickModel
from logeval.clicks.naming import Naming
from logeval.clicks.support.graph import harvest
from logeval.clicks.users.chain import Chain
from logeval.clicks.users.mixture import classes_of
from logeval.errors import LogevalError
from logeval.log.log import Log, load
from logeval.log.queries import Query
from logeval.running.arrays import Floats, Ints
from logeval.storage import tables

if TYPE_CHECKING:
    from logeval.exports.export import Export


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


METHODS = {"swaps": "all pairs", "chain": "chain", "pivot": "pivot"}


def propensities_from(asked: Export, naming: Naming) -> tuple[pd.DataFrame, str]:
    """From swaps or of a model, and which; by default swaps, where they reach every position."""
    how = asked.propensities_from or ("model" if asked.model else None)
    fitted, method = _examined_by_position(asked, how), METHODS.get(how or "swaps", "")
    swapped = f"relative to the first, from swaps ({method})"
    if fitted is None:
        return _all_swaps(asked, method, naming), swapped
    own = propensities_of(asked.fitted, fitted, asked.per_query, naming)
    if how == "model":
        return own, f"by {fitted.model}"
    try:
        table = _all_swaps(asked, method, naming)
    except LogevalError as error:
        if how:
            raise
        return own, f"by {fitted.model}; {error}"
    if how is None and table["examination"].isna().any():
        return own, f"by {fitted.model}, for swaps do not reach every position"
    return _beside(table, own, fitted.model), swapped


def _examined_by_position(asked: Export, how: str | None) -> FittedModel | None:
    """The model that is named, or a PBM; a cascade has no propensities of positions."""
    models = asked.fitted
    pbm = [f for f in models.fitted.values() if f.kind.examined_by == "position"]
    found = models.named(asked.model) if asked.model else pbm[0] if pbm else None
    users = () if found is None else classes_of(found.of(found.queries[0]).users)[1]
    if found is not None and not any(isinstance(each, Chain) for each in users):
        return found
    if how == "model":
        name = (found or models.named()).model
        remedy = f"model={quote(pbm[0].model)}" if pbm else "fit pbm to the log"
        raise LogevalError(
            f"{name}: whether its users examine a position depends on what is above it, not on the "
            f"position; take propensities_from=swaps, or {remedy}"
        )
    return None


def _all_swaps(asked: Export, method: str, naming: Naming) -> pd.DataFrame:
    """A row per position, of all queries together or of each."""
    data = _clicks(asked.fitted, _log_of(asked))
    parts: dict[str | None, Patterns] = {None: data}
    if asked.per_query:
        queries = asked.fitted.named(asked.model).queries
        names = naming.queries(queries)
        parts = {name: data.only({q}) for name, q in zip(names, queries, strict=True)}
    table = pd.concat([_swaps(name, part, method) for name, part in parts.items()])
    return table.astype({"position": int, "previous": "Int64"}).reset_index(drop=True)


def _swaps(query: str | None, data: Patterns, method: str) -> pd.DataFrame:
    """A row per position that the query has."""
    found = harvest(data) if data.K and data.P else pd.DataFrame(columns=["method", "rank"])
    found = found[(found["method"] == method) & (found["rank"] <= data.length.max(initial=0))]
    found = found.rename(columns={"rank": "position"}).assign(query=query, previous=None)
    return found.assign(weight=1.0 / found["examination"]).reindex(columns=COLUMNS)


def _beside(table: pd.DataFrame, of_model: pd.DataFrame, model: str) -> pd.DataFrame:
    """With the model's examination over that of its first position."""
    own = of_model[of_model["previous"].isna()]
    value = dict(zip(_keys(own), 1.0 / own["weight"].to_numpy(), strict=True))
    table[model] = np.array([value.get(key, np.nan) for key in _keys(table)])
    return table


def _keys(table: pd.DataFrame) -> list[tuple[str | None, int]]:
    return list(zip(table["query"], table["position"], strict=True))


def _log_of(asked: Export) -> Log:
    """The log that was given, or that the models were fitted to."""
    if asked.log is not None:
        return asked.opened
    folder = asked.fitted.manifest.get("log_folder")
    if not folder or not tables.there_is(folder):
        raise LogevalError(
            "swaps are counted from the log, and these models do not say where theirs is; name it "
            "with log=FOLDER"
        )
    return load(folder)


def _clicks(models: FittedModels, log: Log) -> Patterns:
    """All SERPs of the queries of the models, the held-out ones too."""
    if log.holds == "counts":
        raise LogevalError(
            f"{log.title}: is a table of counts, which does not say which clicks belong to one "
            "search; take propensities_from=model"
        )
    data = patterns_of(fold(log, queries=models.queries))
    if not data.P:
        raise LogevalError(f"{log.title}: has no SERPs of the queries of these models")
    return data


def without_value(table: pd.DataFrame) -> str:
    """What is blank, in words."""
    blank = int(table["examination"].isna().sum())
    if not blank:
        return ""
    few = "too few items were clicked there and elsewhere"
    return f"; {blank:,} of {len(table):,} are blank: {few}"


FIELDS = {"attraction": ("attraction", "ctr"), "satisfaction": ("satisfaction",)}
FEWEST_DRAWS_OF_ITEMS = 10  # below which their spread says nothing


def graded(
    fitted: FittedModel,
    relevance: str,
    thresholds: Sequence[float],
    quantiles: int | None,
    naming: Naming,
) -> pd.DataFrame:
    """One row per (query, item): grade, relevance with its interval, observations."""
    x = relevance_of(fitted, relevance)
    cuts = np.asarray(thresholds, dtype=float)
    if quantiles is not None:
        cuts = np.unique(np.quantile(x.value, np.arange(1, quantiles) / quantiles))
    known = ~np.isnan(x.low) & ~np.isnan(x.high)
    grade, low, high = (_grade(v, cuts) for v in (x.value, x.low, x.high))
    names = np.array(naming.queries(fitted.queries), dtype=object)
    return pd.DataFrame(
        {
            "query": names[fitted.item_query],
            "item": naming.items(fitted.item_ids),
            "grade": grade,
            "relevance": x.value,
            "low": x.low,
            "high": x.high,
            "observations": x.observations,
            "uncertain": known & (low != high),
            "model": fitted.model,
            "query_number": fitted.item_query,
            "item_id": fitted.item_ids,
        }
    )


def _grade(value: Floats, cuts: Floats) -> Ints:
    return np.searchsorted(cuts, value, side="right")


def withheld_words(every: pd.DataFrame, uncertain: str) -> str:
    """How many judgments there are, and what became of those that are uncertain."""
    done = {"withhold": "withheld", "mark": "marked", "keep": "kept"}[uncertain]
    n, out_of = int(every["uncertain"].sum()), len(every)
    left = out_of - n if uncertain == "withhold" else out_of
    if every["low"].isna().all():
        return f"{left:,} judgments without intervals (the models have none): all kept"
    share, hint = n / max(out_of, 1), "" if left else "; keep them with uncertain=mark"
    return (
        f"{left:,} judgments of {every['query_number'].nunique():,} queries; {n:,} of "
        f"{out_of:,} items ({share:.0%}) have a 95% interval that spans grades and are {done}{hint}"
    )


def relevance_of(fitted: FittedModel, relevance: str) -> ParameterEstimate:
    """The relevance of all (query, item) pairs of a model, (I,), with its intervals."""
    if relevance != "product":
        return _of_classes(fitted, relevance)
    attraction, satisfaction = (_of_classes(fitted, name) for name in FIELDS)
    value = attraction.value * satisfaction.value
    observations = np.minimum(attraction.observations, satisfaction.observations)
    draws = _product(attraction.draws, satisfaction.draws)
    if draws is not None:
        return _with_draws(value, draws, observations)
    low, high = (getattr(attraction, n) * getattr(satisfaction, n) for n in ("low", "high"))
    return ParameterEstimate(value, low, high, observations)  # wider than 95%


def _of_classes(fitted: FittedModel, relevance: str) -> ParameterEstimate:
    """A parameter of items; with classes of users the mean over users."""
    found = [_parameter(part, relevance) for part in fitted.classes]
    if len(found) == 1:
        return found[0]
    share = fitted.estimates["share"]

    def mean(share_of: Floats, values: list[Floats]) -> Floats:
        total: Floats = (share_of[fitted.item_query] * np.stack(values, axis=1)).sum(axis=1)
        return total

    value = mean(share.value, [x.value for x in found])
    observations = np.sum([x.observations for x in found], axis=0)
    kept = [x.draws for x in found if x.draws is not None and len(x.draws) >= FEWEST_DRAWS_OF_ITEMS]
    if share.draws is None or len(kept) < len(found):
        return ParameterEstimate(value, value * np.nan, value * np.nan, observations)
    draws = np.stack(
        [mean(share.draws[d], [x[d] for x in kept]) for d in range(min(map(len, kept)))]
    )
    return _with_draws(value, draws, observations)


def _parameter(fitted: FittedModel, relevance: str) -> ParameterEstimate:
    for p in fitted.kind.PARAMETERS:
        if p.kind == "item" and p.name in FIELDS[relevance]:
            return fitted.estimates[p.field]
    able = {"attraction": "dcm", "satisfaction": "sdbn or dbn"}[relevance]
    raise LogevalError(f"{fitted.model} has no {relevance} of items; fit {able}")


def _product(a: Floats | None, b: Floats | None) -> Floats | None:
    """The products of joint draws; None where there are too few."""
    if a is None or b is None or min(len(a), len(b)) < FEWEST_DRAWS_OF_ITEMS:
        return None
    n = min(len(a), len(b))
    return a[:n] * b[:n]


def _with_draws(value: Floats, draws: Floats, observations: Floats) -> ParameterEstimate:
    """The interval of the Beta that has the mean and spread of the draws."""
    mean = draws.mean(axis=0)
    square = mean**2 + draws.var(axis=0, ddof=1)
    return interval(value, mean, square, observations, draws)
