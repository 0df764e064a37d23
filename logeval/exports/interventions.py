"""Propensities from interventions: items that the log showed at several positions.

Examination relative to the first position, whatever attracts (``clicks.support.harvesting``),
beside what the model says of it. A position that swaps do not tie to the first is blank.
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from logeval.clicks.collection import FittedModels
from logeval.clicks.estimation.patterns import Patterns, patterns_of
from logeval.clicks.estimation.statistics.fold import fold
from logeval.clicks.fitted import FittedModel
from logeval.clicks.models.users.chain import Chain
from logeval.clicks.models.users.mixture import classes_of
from logeval.clicks.naming import Naming
from logeval.clicks.support.harvesting import harvest
from logeval.errors import LogevalError
from logeval.exports.propensities import COLUMNS, propensities_of
from logeval.log.log import Log, load
from logeval.storage import tables

if TYPE_CHECKING:
    from logeval.exports.export import Export

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
