"""Rows of the models table -> fitted models, each row checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from logeval.arrays import Floats, Ints
from logeval.clicks.estimation.estimates import ParameterEstimate
from logeval.clicks.estimation.patterns import NO_REGION
from logeval.clicks.fitted import ITEMS, POSITIONS, SCOPES, FittedModel, averaged
from logeval.clicks.models.model import Parameter
from logeval.clicks.models.registry import MODELS, model_names
from logeval.errors import LogevalError, unknown_names
from logeval.log.queries import Query

DEFAULT_K = 10  # positions of imported models that have no parameter per position
KEYS = ["query_id", "region_id"]
IDENTITY = ["model", "parameter", "has_query", *KEYS, "item_id", "position", "previous"]
NUMBERS = ["value", "low", "high", "observations", "raw"]


def fitted_of_rows(table: pa.Table, source: str) -> dict[str, FittedModel]:
    """The fitted models of a models table."""
    frame: pd.DataFrame = table.to_pandas(integer_object_nulls=True)
    if not len(frame):
        raise LogevalError(f"{source}: there are no rows, so no models")
    for name in ("model", "parameter"):
        if frame[name].isna().any():
            raise LogevalError(
                f"{source}: row {int(frame[name].isna().argmax()) + 1} has no {name}"
            )
    frame["has_query"] = frame["query_id"].notna()
    frame["query_id"] = frame["query_id"].fillna(0).astype(np.int64)
    frame["region_id"] = frame["region_id"].fillna(NO_REGION).astype(np.int64)
    for name in ("item_id", "position", "previous"):
        frame[name] = frame[name].astype("Int64")
    frame[NUMBERS] = frame[NUMBERS].astype(np.float64)
    bad = frame[~frame["value"].between(0.0, 1.0) & (frame["parameter"] != POSITIONS)]
    if len(bad):
        row = bad.iloc[0]
        raise LogevalError(
            f"{source}: {row['parameter']} = {row['value']} of {row['model']} is not a probability"
        )
    given = list(frame["model"].unique())
    model_names(given)
    frame["model"] = frame["model"].map({name: model_names([name])[0] for name in given})
    _check_rows(frame, source)
    out = {}
    for model, rows in frame.groupby("model", sort=False):
        fitted = _fitted(str(model), rows, source)
        out[fitted.model] = fitted
    return out


def _check_rows(frame: pd.DataFrame, source: str) -> None:
    """Refuse rows that would be lost, or read as something else."""

    def refuse(wrong: Any, why: str) -> None:
        wrong = np.asarray(wrong.fillna(False) if hasattr(wrong, "fillna") else wrong, dtype=bool)
        if wrong.any():
            row = frame[wrong].iloc[0]
            raise LogevalError(f"{source}: {row['parameter']} of {row['model']}: {why}")

    scopes = sorted({str(scope) for scope in frame["scope"]} - set(SCOPES))
    if scopes:
        raise unknown_names("scope", scopes, SCOPES)
    kinds = {(name, p.name): p.kind for name in MODELS for p in MODELS[name].PARAMETERS}
    pairs = zip(frame["model"], frame["parameter"], strict=True)
    kind = np.array([kinds.get(pair, "") for pair in pairs])
    position, previous = frame["position"], frame["previous"]
    refuse(position < 1, "positions begin at 1")
    refuse(np.isin(kind, ["position", "transition"]) & position.isna(), "the position is missing")
    refuse((kind == "transition") & previous.isna(), "previous is missing (0: no click above)")
    refuse(
        (kind == "transition") & ((previous < 0) | (previous >= position)),
        "previous must be from 0 (no click above) to position - 1",
    )
    refuse(frame["item_id"].notna() & ~frame["has_query"], "an item needs its query_id")
    lengths = frame["parameter"] == POSITIONS
    refuse(lengths & ~frame["has_query"], "the query_id is missing")
    whole = (frame["value"] >= 1) & (frame["value"] % 1 == 0)
    refuse(lengths & ~whole, "the value must be a whole number from 1")
    refuse(frame.duplicated(IDENTITY), "there are two rows of the same value")


def _fitted(name: str, rows: pd.DataFrame, source: str) -> FittedModel:
    name = model_names([name])[0]
    kind = MODELS[name]
    method, scope = rows["method"].iloc[0], rows["scope"].iloc[0]
    known = {p.name for p in kind.PARAMETERS} | {POSITIONS, ITEMS}
    unknown = sorted(set(rows["parameter"]) - known)
    if unknown:
        raise LogevalError(
            f"{source}: {name} has no parameter {unknown[0]!r}; it has {', '.join(sorted(known))}"
        )
    by_parameter = dict(tuple(rows.groupby("parameter", sort=False)))
    missing = [p.name for p in kind.PARAMETERS if p.name not in by_parameter]
    if missing:
        raise LogevalError(f"{source}: {name} lacks its parameter {missing[0]!r}")

    if rows["scope"].nunique() > 1:
        raise LogevalError(f"{source}: {name} has rows of scope per-query and of scope pooled")
    own = rows[rows["has_query"]]
    if not len(own):
        raise LogevalError(f"{source}: {name} has no query; give its rows a query_id")
    keys = own[KEYS].drop_duplicates()
    place = pd.MultiIndex.from_frame(keys)
    queries = [Query(int(q), None if r == NO_REGION else int(r)) for q, r in keys.to_numpy()]
    items = own[own["item_id"].notna()]
    pairs = items[[*KEYS, "item_id"]].drop_duplicates()
    pair_query = place.get_indexer(pd.MultiIndex.from_frame(pairs[KEYS]))
    order = np.argsort(pair_query, kind="stable")
    pairs, pair_query = pairs.iloc[order], pair_query[order]
    pair_index = pd.MultiIndex.from_frame(pairs.astype(np.int64))
    longest, serps = _positions(by_parameter.get(POSITIONS), rows, place)
    limit = np.full(len(rows), longest.max())
    if scope != "pooled":
        q = place.get_indexer(pd.MultiIndex.from_frame(rows[KEYS]))
        limit = np.where(rows["has_query"], longest[q], limit)
    beyond = rows[(rows["position"].fillna(0) > limit).to_numpy(dtype=bool)]
    if len(beyond):
        row = beyond.iloc[0]
        raise LogevalError(
            f"{source}: {row['parameter']} of {name} has a row at position {row['position']}, "
            f"beyond the {POSITIONS} of its query"
        )

    estimates: dict[str, ParameterEstimate] = {}
    unseen_items: dict[str, Floats] = {}
    unseen_query: dict[str, Any] = {}
    for p in kind.PARAMETERS:
        mine = by_parameter[p.name]
        seen = mine[mine["has_query"]]
        rest = mine[~mine["has_query"]]
        if p.kind == "item":
            at = seen[seen["item_id"].notna()]
            found = pair_index.get_indexer(
                pd.MultiIndex.from_frame(at[[*KEYS, "item_id"]].astype(np.int64))
            )
            estimates[p.field] = _placed(
                at, (len(pair_index),), (found,), f"{source}: {name} {p.name}"
            )
            value = estimates[p.field].value
            alone = seen[seen["item_id"].isna()]
            mean = float(value.mean()) if len(value) else 0.5
            unseen = np.full(len(queries), mean)
            unseen[place.get_indexer(pd.MultiIndex.from_frame(alone[KEYS]))] = alone["value"]
            unseen_items[p.field] = unseen
            unseen_query[p.field] = float(rest["value"].iloc[0]) if len(rest) else mean
        else:
            pooled = scope == "pooled"
            K = int(longest.max(initial=1))
            groups = 1 if pooled else len(queries)
            chosen = rest if pooled else seen
            g = (
                np.zeros(len(chosen), dtype=np.int64)
                if pooled
                else place.get_indexer(pd.MultiIndex.from_frame(chosen[KEYS]))
            )
            label = f"{source}: {name} {p.name}"
            estimates[p.field] = _shared(p, chosen, g, groups, K, longest, pooled, label)
            if len(rest):
                zero = np.zeros(len(rest), dtype=np.int64)
                unseen_query[p.field] = _shared(
                    p, rest, zero, 1, K, np.array([K]), True, label
                ).value[0]
            else:
                positions = np.array([K]) if pooled else longest
                unseen_query[p.field] = averaged(
                    estimates[p.field].value, np.ones(groups), positions
                )
    offsets = np.searchsorted(pair_query, np.arange(len(queries) + 1))
    item_ids = pairs["item_id"].to_numpy(dtype=np.int64)
    return FittedModel(
        name,
        str(method),
        str(scope),
        queries,
        longest,
        serps,
        item_ids,
        offsets,
        estimates,
        unseen_items,
        unseen_query,
    )


def _positions(
    given: pd.DataFrame | None, rows: pd.DataFrame, place: pd.MultiIndex
) -> tuple[Ints, Floats]:
    """K of each query, as given, else the largest position it has a parameter for; and SERPs."""
    top = rows["position"].max()
    longest = np.full(len(place), DEFAULT_K if pd.isna(top) else int(top), dtype=np.int64)
    serps = np.full(len(place), np.nan)
    own = rows[rows["has_query"] & rows["position"].notna()]
    largest = own.groupby(KEYS)["position"].max()
    longest[place.get_indexer(largest.index)] = largest.to_numpy(dtype=np.int64)
    if given is not None:
        at = place.get_indexer(pd.MultiIndex.from_frame(given[KEYS]))
        longest[at], serps[at] = given["value"].astype(np.int64), given["observations"]
    return longest, serps


def _shared(
    p: Parameter,
    rows: pd.DataFrame,
    g: Ints,
    groups: int,
    K: int,
    longest: Ints,
    pooled: bool,
    label: str,
) -> ParameterEstimate:
    """A scalar, position or transition parameter of each group."""
    if p.kind == "scalar":
        return _placed(rows, (groups,), (g,), label)
    k = rows["position"].to_numpy(dtype=np.int64) - 1
    needed = np.full(groups, longest.max(initial=1)) if pooled else longest
    if p.kind == "position":
        fill = np.arange(K) >= needed[:, None]
        return _placed(rows, (groups, K), (g, k), label, fill)
    r = rows["previous"].to_numpy(dtype=np.int64)
    fill = (np.arange(K + 1) > np.arange(K)[:, None]) | (np.arange(K) >= needed[:, None])[..., None]
    return _placed(rows, (groups, K, K + 1), (g, k, r), label, fill)


def _placed(
    rows: pd.DataFrame,
    shape: tuple[int, ...],
    at: tuple[Ints, ...],
    label: str,
    unused: np.ndarray | None = None,
) -> ParameterEstimate:
    """The numbers of the rows in their places; every used place must have its row."""
    arrays = []
    for name in NUMBERS:
        array = np.full(shape, np.nan)
        array[at] = rows[name].to_numpy()
        arrays.append(array)
    value = arrays[0]
    if unused is not None:
        value[np.broadcast_to(unused, shape) & np.isnan(value)] = 0.0
    if np.isnan(value).any():
        where = tuple(int(x) for x in np.argwhere(np.isnan(value))[0])
        raise LogevalError(
            f"{label} is incomplete: {int(np.isnan(value).sum())} rows are missing, "
            f"the first at index {where}"
        )
    return ParameterEstimate(*arrays)
