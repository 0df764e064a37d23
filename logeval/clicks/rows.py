"""Parameters of click models one by one: as tables for people, as JSON, and from elsewhere.

Rows from elsewhere are put in the order that ``rows_of`` has for a model of their queries, items
and positions, each one checked. They may come without ``queries``: then a query has the items and
positions that its parameters speak of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from logeval.clicks.disk import (
    NUMBERS,
    SHARE,
    Listing,
    arrays_of,
    filled,
    fitted_of,
    listings,
    lists_of,
    places,
)
from logeval.clicks.estimation.estimates import ParameterEstimate
from logeval.clicks.fitted import SCOPES, FittedClasses, FittedModel
from logeval.clicks.models.registry import classes_in, kind_of, model_names
from logeval.errors import LogevalError, unknown_names
from logeval.log.queries import Query
from logeval.running.arrays import Bools, Floats, Ints
from logeval.storage.schemas import PARAMETERS
from logeval.storage.tables import list_column

LONGEST_LIST = 1_000  # positions; a table per pair of positions still fits into memory
DEFAULT_K = 10  # positions of imported models that have no parameter per position
NONE = np.iinfo(np.int64).min  # in place of null
QUERY = ["query_id", "region_id"]
KEYS = ["class", *QUERY, "item_id", "position", "previous"]
NEEDS = {  # what the rows of a parameter must name, by its kind
    "item": "a query of the model and one of its items",
    "position": "a position of its query, from 1",
    "transition": "a position of its query, from 1, and the previous click above it (0: none)",
    "scalar": "a query of the model",
    "class": "a query of the model and a class",
}


def rows_of(fitted: FittedModel) -> pa.Table:
    """One row per value, in the order of the lists, and then those of items never seen."""
    arrays = arrays_of(fitted)
    length = pc.list_value_length(arrays["value"]).to_numpy()
    parent = np.repeat(np.arange(len(length)), length)
    at = np.arange(len(parent)) - np.repeat(np.cumsum(length) - length, length)
    same = ["model", "method", "scope", "query_id", "region_id", "parameter", "class"]
    columns: dict[str, Any] = {name: arrays[name].take(pa.array(parent)) for name in same}
    kinds, classes = _kinds(fitted), pc.fill_null(arrays["class"].cast(pa.int64()), NONE)
    each = zip(classes.to_pylist(), arrays["parameter"].to_pylist(), strict=True)
    kind = np.array([kinds[key] for key in each])[parent]
    k, previous = np.tril_indices(int(fitted.positions.max(initial=1)))
    pair, one = kind == "transition", kind == "position"
    place = np.where(pair, at, 0)
    position = np.where(pair, k[place], at) + 1
    columns["position"] = pa.array(position, pa.int32(), mask=~(pair | one))
    columns["previous"] = pa.array(previous[place], pa.int32(), mask=~pair)
    if isinstance(fitted, FittedClasses):
        of_share = pa.array(kind == "class")
        columns["class"] = pc.if_else(of_share, pa.array(at + 1, pa.int32()), columns["class"])
    for name in (*NUMBERS, "prior", "draws"):
        columns[name] = _flat(arrays[name], length)
    columns["item_id"] = _flat(arrays["items"], length)
    of_items = arrays.filter(pc.is_valid(arrays["items"]))
    unseen = {name: of_items[name] for name in same} | {"value": of_items["unseen"]}
    return pa.concat_tables(filled(part, PARAMETERS) for part in (columns, unseen))


def _kinds(fitted: FittedModel) -> dict[tuple[int, str], str]:
    """What the parameters of each class depend on; class ``NONE`` where users do not differ."""
    if not isinstance(fitted, FittedClasses):
        return {(NONE, p.name): p.kind for p in fitted.kind.PARAMETERS}
    of_class = {
        (c, name): kind
        for c, part in enumerate(fitted.parts, 1)
        for (_, name), kind in _kinds(part).items()
    }
    return of_class | {(NONE, SHARE): "class"}


def _flat(lists: pa.ChunkedArray, length: Ints) -> pa.ChunkedArray:
    """The elements of lists, one after the other; nulls where a list is null."""
    there = np.repeat(pc.is_valid(lists).to_numpy(), length)
    return pc.list_flatten(lists).take(pa.array(np.cumsum(there) - 1, mask=~there))


# -- from elsewhere ---------------------------------------------------------------------------


def fitted_of_rows(rows: pa.Table, queries: pa.Table | None, source: str) -> dict[str, FittedModel]:
    """The fitted models of rows, and of a queries table where there is one."""
    frame, draws = _frame(rows, source), _draws(rows["draws"], source)
    listed = {}
    if queries is not None:
        names = pa.array(_canonical(queries["model"]), pa.string())
        listed = listings(queries.set_column(0, queries.schema.field("model"), names))
    if without := [name for name in listed if name not in frame["model"].unique()]:
        raise LogevalError(f"{source}: {without[0]} has queries, but no parameters")
    found = {}
    for model, mine in frame.groupby("model", sort=False):
        name, label = str(model), f"{source}: {model}"
        if queries is None and (mine["query_id"] == NONE).all():
            raise LogevalError(f"{label} has no query; give its rows a query_id")
        listing = _spoken_of(mine) if queries is None else listed[name]
        found[name] = _fitted(name, mine, draws, listing, label)
    return found


def _frame(rows: pa.Table, source: str) -> pd.DataFrame:
    """The rows with ``NONE`` in place of nulls in their keys."""
    if not rows.num_rows:
        raise LogevalError(f"{source}: there are no rows, so no models")
    for name in ("model", "parameter"):
        missing = pc.is_null(rows[name]).to_numpy()
        if missing.any():
            raise LogevalError(f"{source}: row {int(missing.argmax()) + 1} has no {name}")
    frame = _keys_of(rows).assign(
        model=_canonical(rows["model"]), prior=rows["prior"].cast(pa.float64()).to_numpy()
    )
    for name in ("method", "scope", *NUMBERS):
        frame[name] = rows[name].to_numpy()
    if len(bad := frame[~frame["value"].between(0.0, 1.0)]):
        row = bad.iloc[0]
        raise LogevalError(
            f"{source}: {row['parameter']} = {row['value']} of {row['model']} is not a probability"
        )
    for name in NUMBERS[1:]:
        finite = frame[name].between(0.0, np.inf, inclusive="left").to_numpy()
        needs = "must be a number from 0, or null"
        _refuse(pc.is_valid(rows[name]).to_numpy() & ~finite, frame, name, needs, source)
    crossed = (frame["low"] > frame["high"]).to_numpy()
    _refuse(crossed, frame, "low", "must be at most high; exchange them, or leave both out", source)
    if scopes := sorted(set(frame["scope"].unique()) - set(SCOPES)):
        raise unknown_names("scope", scopes, SCOPES)
    return frame


def _refuse(wrong: Bools, frame: pd.DataFrame, name: str, why: str, source: str) -> None:
    """An error that names the first wrong row."""
    if wrong.any():
        at = int(wrong.argmax())
        row = frame.iloc[at]
        raise LogevalError(
            f"{source}: row {at + 1}, {row['parameter']} of {row['model']}: "
            f"{name} = {row[name]:g} {why}"
        )


def check_base(models: Mapping[str, FittedModel], source: str) -> None:
    """Refuse lists that no log can have shown, in rows from elsewhere."""
    for name, fitted in models.items():
        for q, base in enumerate(fitted.base or []):
            own, query = fitted.item_ids[fitted.span(q)], fitted.queries[q]
            items, count = np.unique(base, return_counts=True)
            for wrong, why in (
                (items[count > 1], "is twice in it; leave it in once"),
                (np.setdiff1d(items, own), "has no parameters; add its rows, or leave it out"),
            ):
                if len(wrong):
                    raise LogevalError(
                        f"{source}: {name}: base of query {query}: item {wrong[0]} {why}"
                    )


def _draws(column: pa.ChunkedArray, source: str) -> Floats:
    """The draws of each row, (rows, D): as many of every row that has some, nan of the others."""
    length = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    D = int(length.max(initial=0))
    flat = pc.list_flatten(column).to_numpy()
    if not np.isin(length, (0, D)).all() or not ((flat >= 0) & (flat <= 1)).all():
        raise LogevalError(
            f"{source}: draws are probabilities, and equally many of every row; fit again"
        )
    draws = np.full((len(length), D), np.nan)
    draws[length > 0] = flat.reshape(-1, D) if D else 0.0
    return draws


def _canonical(column: pa.ChunkedArray) -> list[str]:
    """The models' names as the papers print them."""
    given = column.to_pylist()
    distinct = list(dict.fromkeys(given))
    model_names(distinct)  # all unknown ones in one message
    name_of = {name: model_names([name])[0] for name in distinct}
    return [name_of[name] for name in given]


def _spoken_of(rows: pd.DataFrame) -> Listing:
    """The queries, items and positions that parameters speak of."""
    own = rows[rows["query_id"] != NONE]
    queries = own[QUERY].drop_duplicates()
    place = pd.MultiIndex.from_frame(queries)
    pairs = own.loc[own["item_id"] != NONE, [*QUERY, "item_id"]].drop_duplicates()
    q = place.get_indexer(pd.MultiIndex.from_frame(pairs[QUERY]))
    positions = np.full(len(place), max(int(rows["position"].max()), 0) or DEFAULT_K)
    largest = own[own["position"] != NONE].groupby(QUERY)["position"].max()
    positions[place.get_indexer(largest.index)] = largest.to_numpy(dtype=np.int64)
    return Listing(
        [_query(*row) for row in queries.itertuples(index=False)],
        positions,
        np.full(len(place), np.nan),
        pairs["item_id"].to_numpy(dtype=np.int64)[np.argsort(q, kind="stable")],
        np.searchsorted(np.sort(q), np.arange(len(place) + 1)),
    )


def _query(query_id: int, region_id: int) -> Query:
    return Query(int(query_id), None if region_id == NONE else int(region_id))


def _fitted(
    name: str, rows: pd.DataFrame, draws: Floats, listing: Listing, label: str
) -> FittedModel:
    """A model of rows: they are put in the places that ``rows_of`` has for such a model."""
    if len(scopes := sorted(rows["scope"].unique())) > 1:
        raise LogevalError(f"{label} has rows of scope {' and of scope '.join(scopes)}")
    if listing.positions.max(initial=1) > LONGEST_LIST or (listing.positions < 1).any():
        raise LogevalError(f"{label}: lists have at least 1 and at most {LONGEST_LIST:,} positions")
    _check_once(listing, label)
    method, C = str(rows["method"].iloc[0]), _number_of_classes(rows, label)
    empty = _without_values(name, method, scopes[0], listing, C)
    kinds, given = {p: kind for (_, p), kind in _kinds(empty).items()}, set(rows["parameter"])
    if unknown := sorted(given.difference(kinds)):
        names = ", ".join(sorted(kinds))
        raise LogevalError(f"{label} has no parameter {unknown[0]!r}; it has {names}")
    if lacking := [p for p in kinds if p not in given]:
        raise LogevalError(f"{label} lacks its parameter {lacking[0]!r}")
    arrays, wanted = arrays_of(empty), rows_of(empty).select(["parameter", *KEYS])
    if scopes[0] != "pooled":  # of queries never seen, as older versions wrote them
        rows = rows[(rows["query_id"] != NONE) | (rows["parameter"].map(kinds) == "item")]
    at = _places(rows, wanted, kinds, label)
    numbers = np.full((wanted.num_rows, len(NUMBERS) + 1), np.nan)
    numbers[at] = rows[[*NUMBERS, "prior"]]
    length = pc.list_value_length(arrays["value"]).to_numpy()
    n, of_items = int(length.sum()), pc.is_valid(arrays["items"]).to_numpy()
    if (missing := np.isnan(numbers[:n, 0])).any():
        rows = _keys_of(wanted[:n])[missing]
        parameter, first = rows["parameter"].iloc[0], _named(rows.iloc[0])
        raise LogevalError(
            f"{label} {parameter} is incomplete: {(rows['parameter'] == parameter).sum()} rows are "
            f"missing, the first is that of {first}"
        )
    columns: dict[str, Any] = {name: arrays[name] for name in arrays.column_names}
    for i, column in enumerate(NUMBERS):
        columns[column] = lists_of(length, numbers[:n, i])
    marks = pa.array(numbers[:n, -1], from_pandas=True).cast(pa.bool_())
    columns["prior"] = lists_of(length, marks)
    unseen = np.full(len(length), np.nan)
    unseen[of_items] = numbers[n:, 0]
    columns["unseen"] = pa.array(unseen)
    if draws.shape[1]:
        values = np.full((wanted.num_rows, draws.shape[1]), np.nan)
        values[at] = draws[rows.index]
        columns["draws"] = lists_of(length, list_column(values[:n].astype(np.float32)))
    fitted = fitted_of(filled(columns, arrays.schema), {name: listing}, label)[name]
    if not isinstance(fitted, FittedClasses):
        return _with_unseen(fitted)
    wrong = np.abs(fitted.estimates[SHARE].value.sum(axis=1) - 1.0) > 1e-6
    if wrong.any():
        query = listing.queries[int(wrong.argmax())]
        raise LogevalError(f"{label}: the shares of the classes of query {query} must add up to 1")
    return replace(fitted, parts=tuple(map(_with_unseen, fitted.parts)))


def _check_once(listing: Listing, label: str) -> None:
    """Refuse a query or an item that is listed twice."""
    item_query = np.repeat(np.arange(len(listing.queries)), np.diff(listing.offsets))
    pairs = list(zip(item_query.tolist(), listing.item_ids.tolist(), strict=True))
    for what, listed in (("query {}", listing.queries), ("item {0[1]} of a query", pairs)):
        if twice := [one for one, count in Counter(listed).items() if count > 1]:
            raise LogevalError(f"{label}: {what.format(twice[0])} is listed twice")


def _number_of_classes(rows: pd.DataFrame, label: str) -> int:
    """How many classes of users rows have; 0: none."""
    numbers = sorted(rows["class"].unique())
    if numbers == [NONE]:
        return 0
    if NONE in numbers:
        raise LogevalError(f"{label}: some rows have a class of users, and others have none")
    if numbers != list(range(1, len(numbers) + 1)):
        raise LogevalError(f"{label}: classes are numbered from 1, without gaps")
    return len(numbers)


def _without_values(name: str, method: str, scope: str, listing: Listing, C: int) -> FittedModel:
    """A model with nan for all of its values, which says where they belong."""
    same: dict[str, Any] = {"method": method, "scope": scope, **listing._asdict()}
    Q, parts = len(listing.queries), []
    kinds = classes_in(name, C) if C else [name]
    if C and len(kinds) != C:
        raise LogevalError(f"{name} has {C} classes; its members have {len(kinds)}")
    for kind in kinds:
        parameters = kind_of(kind).PARAMETERS
        shapes = {p.field: places(p, listing, scope).shape for p in parameters}
        x = {
            name: ParameterEstimate.known(np.full(shape, np.nan)) for name, shape in shapes.items()
        }
        items = [p.field for p in parameters if p.kind == "item"]
        unseen = {name: np.full(Q, np.nan) for name in items}
        rest = dict.fromkeys(items, np.nan)
        parts.append(FittedModel(kind, estimates=x, unseen_items=unseen, unseen_query=rest, **same))
    if not C:
        return parts[0]
    x = {SHARE: ParameterEstimate.known(np.full((Q, C), np.nan))}
    return FittedClasses(
        name, estimates=x, unseen_items={}, unseen_query={}, parts=tuple(parts), **same
    )


def _places(rows: pd.DataFrame, wanted: pa.Table, kinds: Mapping[str, str], label: str) -> Ints:
    """Where each row is among those wanted."""
    index = pd.MultiIndex.from_frame(_keys_of(wanted))
    at = index.get_indexer(pd.MultiIndex.from_frame(rows[["parameter", *KEYS]]))
    for wrong, why in (
        (at < 0, "has no place; it must name {}"),
        (pd.Series(at).duplicated().to_numpy(), "is there twice"),
    ):
        if wrong.any():
            row = rows[wrong].iloc[0]
            why = why.format(NEEDS[kinds[row["parameter"]]])
            raise LogevalError(f"{label} {row['parameter']}: the row of {_named(row)} {why}")
    return at


def _keys_of(table: pa.Table) -> pd.DataFrame:
    """What rows are of, with ``NONE`` in place of null."""
    columns = {name: pc.fill_null(table[name].cast(pa.int64()), NONE).to_numpy() for name in KEYS}
    return pd.DataFrame({"parameter": table["parameter"].to_numpy()} | columns)


def _with_unseen(fitted: FittedModel) -> FittedModel:
    """The model with the mean of its items in place of nan for those never seen."""
    items, query = {}, {}
    for name, each in fitted.unseen_items.items():
        value, rest = fitted.estimates[name].value, fitted.unseen_query[name]
        mean = float(value.mean()) if len(value) else 0.5
        items[name] = np.where(np.isnan(each), mean, each)
        query[name] = mean if np.isnan(rest) else rest
    return replace(fitted, unseen_items=items, unseen_query=query)


def _named(row: Any) -> str:
    """What a row is of."""
    named = {} if row["query_id"] == NONE else {"query": _query(*row[QUERY])}
    named |= {name: row[name] for name in KEYS if name not in QUERY and row[name] != NONE}
    parts = [f"{name.removesuffix('_id')} {value}" for name, value in named.items()]
    return ", ".join(parts) or "all queries"
