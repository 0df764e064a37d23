"""Propensities of positions, and graded relevance of items, as tables.

A propensity is how often a position is examined, relative to the first: from swaps, whatever
attracts (``clicks.support.harvesting``), or that of a PBM. A position that swaps do not tie to the
first is blank.

The relevance of an item is its attraction (clicked when examined), or its satisfaction (the search
ends there, given the click: SDBN and DBN). Its grade is the number of thresholds that it reaches.
An item is *uncertain* when the two ends of its 95% interval have different grades: another log of
this size might have graded it otherwise.
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from logeval.clicks.estimation.estimates import ParameterEstimate
from logeval.clicks.estimation.fold import fold
from logeval.clicks.estimation.patterns import patterns_of
from logeval.clicks.estimation.posterior import interval
from logeval.clicks.fitted import FittedModel
from logeval.clicks.naming import Naming
from logeval.clicks.support.graph import harvest
from logeval.errors import LogevalError
from logeval.log.log import load
from logeval.running.arrays import Floats
from logeval.storage import tables

if TYPE_CHECKING:
    from logeval.exports.export import Export


LEAST = 1e-12
FEWEST_DRAWS = 10  # below which their spread says nothing
FIELDS = {"attraction": ("attraction", "ctr"), "satisfaction": ("satisfaction",)}


# -- propensities ----------------------------------------------------------------------------------


def propensities_from(asked: Export) -> tuple[pd.DataFrame, str]:
    """A row per position, and where they are from; by default swaps, where they reach them all."""
    how = asked.propensities_from or ("model" if asked.model else None)
    fitted, swapped = _pbm_of(asked, how), "relative to the first, from swaps"
    if fitted is None:
        return _swaps(asked), swapped
    own = propensities_of(fitted)
    if how == "model":
        return own, f"by {fitted.model}"
    try:
        table = _swaps(asked)
    except LogevalError as error:
        if how:
            raise
        return own, f"by {fitted.model}; {error}"
    if how is None and table["examination"].isna().any():
        return own, f"by {fitted.model}, for swaps do not reach every position"
    beside = pd.Series(1.0 / own["weight"].to_numpy(), own["position"])
    return table.assign(**{fitted.model: table["position"].map(beside)}), swapped


def propensities_of(fitted: FittedModel) -> pd.DataFrame:
    """Examination of a PBM, on average over queries by their SERPs, with intervals by its draws."""
    draws = fitted.some_draws(fitted.n_draws) if fitted.n_draws >= FEWEST_DRAWS else []
    value, *drawn = (_examination(each) for each in (fitted, *draws))
    x = ParameterEstimate.known(value) if not drawn else _with_draws(value, np.array(drawn))
    weight = value[0] / np.maximum(value, LEAST)
    columns = {"position": np.arange(len(value)) + 1, "examination": value}
    return pd.DataFrame(columns | {"low": x.low, "high": x.high, "weight": weight})


def _examination(fitted: FittedModel) -> Floats:
    """The mean over the queries that have a position, (K,)."""
    weight = np.nan_to_num(fitted.serps, nan=1.0)
    total, n = np.zeros((2, int(fitted.positions.max(initial=1))))
    for q, query in enumerate(fitted.queries):
        model: Any = fitted.of(query)
        e = model.e if len(fitted.classes) == 1 else model.share @ [c.e for c in model.classes]
        total[: len(e)] += weight[q] * e
        n[: len(e)] += weight[q]
    return np.minimum(total / np.maximum(n, 1e-300), 1.0)  # rounding


def _pbm_of(asked: Export, how: str | None) -> FittedModel | None:
    """The model that is named, or a PBM; others have no propensities of positions."""
    models = asked.fitted
    pbm = [one for one in models.fitted.values() if one.kind.examined_by == "position"]
    found = models.named(asked.model) if asked.model else pbm[0] if pbm else None
    if found is not None and found.kind.examined_by == "position":
        return found
    if how == "model":
        name = (found or models.named()).model
        remedy = f"model={quote(pbm[0].model)}" if pbm else "fit pbm to the log"
        raise LogevalError(
            f"{name}: whether its users examine a position does not depend on the position alone; "
            f"take propensities_from=swaps, or {remedy}"
        )
    return None


def _swaps(asked: Export) -> pd.DataFrame:
    """Counted in all SERPs of the models' queries, the held-out ones too."""
    folder = asked.fitted.manifest.get("log_folder")
    if asked.log is None and not (folder and tables.there_is(folder)):
        raise LogevalError(
            "swaps are counted from the log, and these models do not say where theirs is; name it "
            "with log=FOLDER"
        )
    log = load(str(folder)) if asked.log is None else asked.opened
    if log.holds != "serps":
        raise LogevalError(
            f"{log.title}: is a table of counts, which does not say which clicks belong to one "
            "search; take propensities_from=model"
        )
    data = patterns_of(fold(log, queries=asked.fitted.queries))
    if not data.P:
        raise LogevalError(f"{log.title}: has no SERPs of the queries of these models")
    found = harvest(data)
    found = found[found["method"] == "all pairs"].rename(columns={"rank": "position"})
    table = found.assign(weight=1.0 / found["examination"]).reset_index(drop=True)
    return table[["position", "examination", "low", "high", "weight"]]


# -- grades ----------------------------------------------------------------------------------------


def graded(fitted: FittedModel, asked: Export, naming: Naming) -> pd.DataFrame:
    """One row per (query, item): grade, relevance with its interval, observations."""
    x = relevance_of(fitted, asked.relevance)
    cuts = np.asarray(asked.cuts, dtype=float)
    grade, low, high = (np.searchsorted(cuts, v, side="right") for v in (x.value, x.low, x.high))
    known = ~np.isnan(x.low) & ~np.isnan(x.high)
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


def relevance_of(fitted: FittedModel, relevance: str) -> ParameterEstimate:
    """The relevance of all (query, item) pairs of a model, (I,); of classes the mean over users."""
    found = [_parameter(part, relevance) for part in fitted.classes]
    if len(found) == 1:
        return found[0]
    share = fitted.estimates["share"]

    def mean(share_of: Floats, values: list[Floats]) -> Floats:
        total: Floats = (share_of[fitted.item_query] * np.stack(values, axis=1)).sum(axis=1)
        return total

    value = mean(share.value, [x.value for x in found])
    observations = np.sum([x.observations for x in found], axis=0)
    kept = [x.draws for x in found if x.draws is not None and len(x.draws) >= FEWEST_DRAWS]
    if share.draws is None or len(kept) < len(found):
        return ParameterEstimate(value, value * np.nan, value * np.nan, observations)
    D = min(map(len, kept))
    draws = np.stack([mean(share.draws[d], [x[d] for x in kept]) for d in range(D)])
    return _with_draws(value, draws, observations)


def _parameter(fitted: FittedModel, relevance: str) -> ParameterEstimate:
    for p in fitted.kind.PARAMETERS:
        if p.kind == "item" and p.name in FIELDS[relevance]:
            return fitted.estimates[p.field]
    able = {"attraction": "dcm", "satisfaction": "sdbn or dbn"}[relevance]
    raise LogevalError(f"{fitted.model} has no {relevance} of items; fit {able}")


def _with_draws(
    value: Floats, draws: Floats, observations: Floats | None = None
) -> ParameterEstimate:
    """The interval of the Beta that has the mean and spread of the draws."""
    mean = draws.mean(axis=0)
    square = mean**2 + draws.var(axis=0, ddof=1)
    unknown = np.full(value.shape, np.nan)
    return interval(value, mean, square, unknown if observations is None else observations, draws)
