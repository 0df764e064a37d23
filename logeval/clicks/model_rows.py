"""A fitted click model -> its rows in the tables ``models`` and ``queries``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from logeval.clicks.estimation.estimates import ParameterEstimate
from logeval.clicks.fitted import FittedModel
from logeval.clicks.models.model import Parameter
from logeval.running.arrays import Bools, Floats, Ints
from logeval.storage.schemas import MODELS, QUERIES


def parameter_rows(fitted: FittedModel) -> pa.Table:
    """The rows of the models table."""
    parts = []
    for p in fitted.kind.PARAMETERS:
        parts.append(_item_rows(fitted, p) if p.kind == "item" else _shared_rows(fitted, p))
        parts.append(_unseen_rows(fitted, p))
    return pa.concat_tables(parts)


def query_rows(fitted: FittedModel) -> pa.Table:
    """The rows of the queries table."""
    Q = len(fitted.queries)
    base = pa.nulls(Q, pa.list_(pa.int64()))
    if fitted.base is not None:
        length = np.array([len(shown) for shown in fitted.base], dtype=np.int64)
        base = _lists(
            length, np.concatenate([*fitted.base, np.empty(0, dtype=np.int64)]), null=length == 0
        )
    columns = [
        pa.repeat(fitted.model, Q),
        *_keys(fitted, np.arange(Q)),
        pa.array(fitted.serps, mask=np.isnan(fitted.serps)).cast(pa.int64()),
        pa.array(fitted.positions, pa.int32()),
        _lists(np.diff(fitted.offsets), fitted.item_ids),
        base,
    ]
    return pa.table(columns, schema=QUERIES)


def _lists(length: Ints, values: Ints, null: Bools | None = None) -> pa.ListArray:
    offsets = pa.array(np.concatenate([[0], np.cumsum(length)]), pa.int32())
    mask = None if null is None else pa.array(null)
    return pa.ListArray.from_arrays(offsets, pa.array(values, pa.int64()), mask=mask)


def _keys(fitted: FittedModel, q: Ints) -> list[pa.Array]:
    """query_id and region_id of each row."""
    chosen = pa.array(q)
    ids = pa.array([query.query_id for query in fitted.queries], pa.int64())
    regions = pa.array([query.region_id for query in fitted.queries], pa.int64())
    return [ids.take(chosen), regions.take(chosen)]


def _rows(fitted: FittedModel, parameter: str, q: Ints | None, n: int, **columns: Any) -> pa.Table:
    full: dict[str, Any] = {
        "model": pa.repeat(fitted.model, n),
        "method": pa.repeat(fitted.method, n),
        "scope": pa.repeat(fitted.scope, n),
        "parameter": pa.repeat(parameter, n),
    }
    if q is not None:
        full["query_id"], full["region_id"] = _keys(fitted, q)
    full |= columns
    arrays = []
    for f in MODELS:
        given = full.get(f.name)
        if given is None:
            arrays.append(pa.nulls(n, f.type))
        elif f.name == "draws":  # (D, n)
            ends = np.arange(n + 1, dtype=np.int32) * np.int32(len(given))
            flat = np.ascontiguousarray(given.T, dtype=np.float32).ravel()
            arrays.append(pa.ListArray.from_arrays(pa.array(ends), pa.array(flat)))
        elif isinstance(given, np.ndarray) and given.dtype.kind == "f":
            arrays.append(pa.array(given, f.type, mask=np.isnan(given)))
        else:
            arrays.append(pa.array(given, f.type))
    return pa.table(arrays, schema=MODELS)


def _item_rows(fitted: FittedModel, p: Parameter) -> pa.Table:
    q = fitted.item_query
    columns = _columns(fitted.estimates[p.field], np.arange(len(q)))
    return _rows(fitted, p.name, q, len(q), item_id=fitted.item_ids, **columns)


def _shared_rows(fitted: FittedModel, p: Parameter) -> pa.Table:
    value = fitted.estimates[p.field].value
    G = len(value)
    pooled = fitted.scope == "pooled"
    longest = np.full(G, fitted.positions.max(initial=1)) if pooled else fitted.positions
    if p.kind == "scalar":
        at: tuple[Ints, ...] = (np.arange(G),)
        columns: dict[str, Any] = {}
    elif p.kind == "position":
        at = np.nonzero(np.arange(value.shape[1]) < longest[:, None])
        columns = {"position": at[1] + 1}
    else:
        k, r = np.arange(value.shape[1])[:, None], np.arange(value.shape[2])
        at = np.nonzero((r <= k) & (k < longest[:, None, None]))
        columns = {"position": at[1] + 1, "previous": at[2]}
    columns |= _columns(fitted.estimates[p.field], at)
    return _rows(fitted, p.name, None if pooled else at[0], len(at[0]), **columns)


def _unseen_rows(fitted: FittedModel, p: Parameter) -> pa.Table:
    """Rows without an item, or without a query, for what was never seen."""
    value = np.asarray(fitted.unseen_query[p.field], dtype=np.float64)
    if p.kind == "item":
        known, Q = fitted.unseen_items[p.field], len(fitted.queries)
        rows = _rows(fitted, p.name, np.arange(Q), Q, value=known)
        rest = _rows(fitted, p.name, None, 1, value=value.reshape(1))
        return pa.concat_tables([rows, rest])
    if fitted.scope == "pooled":
        return MODELS.empty_table()
    if p.kind == "scalar":
        return _rows(fitted, p.name, None, 1, value=value.reshape(1))
    if p.kind == "position":
        K = np.arange(1, len(value) + 1)
        return _rows(fitted, p.name, None, len(value), value=value, position=K)
    k, r = np.tril_indices(len(value))
    return _rows(fitted, p.name, None, len(k), value=value[k, r], position=k + 1, previous=r)


def _columns(estimate: ParameterEstimate, at: Any) -> dict[str, Floats]:
    columns = {
        name: np.asarray(getattr(estimate, name))[at]
        for name in ("value", "low", "high", "observations")
    }
    if estimate.raw is not None:
        columns["raw"] = estimate.raw[at]
    if estimate.draws is not None and len(estimate.draws):
        columns["draws"] = estimate.draws[(slice(None), *(at if isinstance(at, tuple) else (at,)))]
    return columns
