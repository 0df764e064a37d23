"""A fitted click model -> its rows in the tables ``models`` and ``queries``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from logeval.clicks.estimation.estimates import ParameterEstimate
from logeval.clicks.fitted import FittedClasses, FittedModel
from logeval.clicks.models.model import Parameter
from logeval.log.queries import Query
from logeval.running.arrays import Bools, Ints
from logeval.storage.schemas import MODELS, QUERIES
from logeval.storage.tables import list_column

SHARE = Parameter("share", "share", "scalar")  # of a class of users
NUMBERS = ("value", "low", "high", "observations", "raw")  # of a ParameterEstimate


def places(p: Parameter, longest: Ints, K: int) -> Bools:
    """Which values of a shared parameter there are, in groups with lists of up to ``longest``.

    In the shape of its arrays, (G,), (G, K) or (G, K, K + 1).
    """
    inside = np.arange(K) < longest[:, None]
    if p.kind == "scalar":
        return np.ones(len(longest), dtype=np.bool_)
    if p.kind == "position":
        return inside
    return inside[..., None] & (np.arange(K + 1) <= np.arange(K)[:, None])


def parameter_rows(fitted: FittedModel) -> pa.Table:
    """The rows of the models table.

    Those without an item, or without a query, are for what was never seen.
    """
    if isinstance(fitted, FittedClasses):
        return _class_rows(fitted)
    every, known = np.arange(len(fitted.queries)), ParameterEstimate.known
    parts = []
    for p in fitted.kind.PARAMETERS:
        x = fitted.estimates[p.field]
        unseen = known(np.asarray(fitted.unseen_query[p.field], dtype=np.float64)[None])
        if p.kind == "item":
            keys: dict[str, Any] = {"item_id": fitted.item_ids} | _prior(fitted, p)
            parts.append(_rows(fitted, p, x, q=fitted.item_query, **keys))
            parts.append(_rows(fitted, p, known(fitted.unseen_items[p.field]), q=every))
            parts.append(_rows(fitted, p, unseen))
        elif fitted.scope == "pooled":
            longest = fitted.positions.max(initial=1, keepdims=True)
            parts.append(_shared_rows(fitted, p, x, longest, **_prior(fitted, p)))
        else:
            marks = _prior(fitted, p)
            parts.append(_shared_rows(fitted, p, x, fitted.positions, of_queries=True, **marks))
            longest = np.array(unseen.value.shape[1:2] or [1])
            parts.append(_shared_rows(fitted, p, unseen, longest))
    return pa.concat_tables(parts)


def _class_rows(fitted: FittedClasses) -> pa.Table:
    """The rows of each class, and the shares of all."""
    parts, column = [], MODELS.get_field_index("class")
    for c, part in enumerate(fitted.parts):
        rows = parameter_rows(part)
        number = pa.repeat(pa.scalar(c + 1, pa.int32()), rows.num_rows)
        parts.append(rows.set_column(column, MODELS.field(column), number))
    share, q = fitted.estimates["share"], np.arange(len(fitted.queries))
    for c in range(len(fitted.parts)):
        numbers = np.full(len(q), c + 1)
        own = share.map(lambda x, c=c: x[:, c])  # type: ignore[misc]
        keys: dict[str, Any] = {"class": numbers}
        parts.append(_rows(fitted, SHARE, own, q=q, **keys))
    return pa.concat_tables(parts)


def query_rows(fitted: FittedModel) -> pa.Table:
    """The rows of the queries table."""
    Q = len(fitted.queries)
    base = pa.nulls(Q, pa.list_(pa.int64()))
    if fitted.base is not None:
        length = np.array([len(shown) for shown in fitted.base], dtype=np.int64)
        base = lists_of(
            length, np.concatenate([*fitted.base, np.empty(0, dtype=np.int64)]), null=length == 0
        )
    columns = [
        pa.repeat(fitted.model, Q),
        *query_columns(fitted.queries, np.arange(Q)),
        pa.array(fitted.serps, mask=np.isnan(fitted.serps)).cast(pa.int64()),
        pa.array(fitted.positions, pa.int32()),
        lists_of(np.diff(fitted.offsets), fitted.item_ids),
        base,
        pa.nulls(Q, pa.float64()) if fitted.identified is None else pa.array(fitted.identified),
    ]
    return pa.table(columns, schema=QUERIES)


def lists_of(length: Ints, values: Ints, null: Bools | None = None) -> pa.ListArray:
    """A column of lists from their lengths and all values, one list after the other."""
    offsets = pa.array(np.concatenate([[0], np.cumsum(length)]), pa.int32())
    mask = None if null is None else pa.array(null)
    return pa.ListArray.from_arrays(offsets, pa.array(values, pa.int64()), mask=mask)


def query_columns(queries: Sequence[Query], q: Ints) -> list[pa.Array]:
    """query_id and region_id of rows that are of the queries number q."""
    ids = pa.array([query.query_id for query in queries], pa.int64())
    regions = pa.array([query.region_id for query in queries], pa.int64())
    return [ids.take(pa.array(q)), regions.take(pa.array(q))]


def _prior(fitted: FittedModel, p: Parameter) -> dict[str, Any]:
    """Which values rest on the prior, where that is known."""
    return {"prior": fitted.prior[p.field]} if p.field in fitted.prior else {}


def _shared_rows(
    fitted: FittedModel,
    p: Parameter,
    x: ParameterEstimate,
    longest: Ints,
    of_queries: bool = False,
    **marks: Bools,
) -> pa.Table:
    at = np.nonzero(places(p, longest, x.value.shape[1] if x.value.ndim > 1 else 1))
    keys: dict[str, Any] = dict(zip(("position", "previous"), at[1:], strict=False))
    if keys:
        keys["position"] = keys["position"] + 1
    keys |= {name: values[at] for name, values in marks.items()}
    return _rows(fitted, p, x, at, at[0] if of_queries else None, **keys)


def _rows(
    fitted: FittedModel,
    p: Parameter,
    x: ParameterEstimate,
    at: tuple[Any, ...] = (slice(None),),
    q: Ints | None = None,
    **keys: Ints,
) -> pa.Table:
    """The values at some places, with what they are of; the query is given by its number."""
    n = len(x.value[at])
    same = {"model": fitted.model, "method": fitted.method, "scope": fitted.scope}
    same |= {"parameter": p.name}
    columns: dict[str, Any] = {name: pa.repeat(value, n) for name, value in same.items()} | keys
    if q is not None:
        columns["query_id"], columns["region_id"] = query_columns(fitted.queries, q)
    for name in NUMBERS:
        if (numbers := getattr(x, name)) is not None:
            columns[name] = numbers[at]
    if x.draws is not None and len(x.draws):
        columns["draws"] = list_column(x.draws[(slice(None), *at)].T.astype(np.float32))
    arrays = [
        pa.array(columns[f.name], f.type, from_pandas=True)
        if f.name in columns
        else pa.nulls(n, f.type)
        for f in MODELS
    ]
    return pa.table(arrays, schema=MODELS)
