"""One click model fitted to many queries: flat arrays, its rows in the models table, and back.

Item parameters are numbered through over all queries, as in ``Patterns``. Besides the fitted
values there are those for what was never seen: an item of a known query (the prior's mean), and
a query (the prior of the log, and position parameters averaged over queries by SERPs).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from logeval import tables
from logeval.arrays import Floats, Ints
from logeval.clicks.estimation.estimates import ParameterEstimate
from logeval.clicks.models.model import ClickModel, Parameter
from logeval.clicks.models.registry import MODELS
from logeval.log.queries import Query

SCOPES = ("per-query", "pooled")
POSITIONS = "positions"  # the row with K, the longest list of a query, and its SERPs
ITEMS = "items"  # rows that keep the items of a model without parameters of items
UNSEEN = -1  # the id of the stand-in for items never seen


@dataclass(frozen=True)
class FittedModel:
    """A model, ``per-query`` or ``pooled``, with Q queries and I (query, item) pairs."""

    model: str
    method: str
    scope: str
    queries: list[Query]
    positions: Ints  # (Q,) longest list
    serps: Floats  # (Q,) number of SERPs fitted
    item_ids: Ints  # (I,)
    offsets: Ints  # (Q + 1,)
    estimates: dict[str, ParameterEstimate]  # by field: (I,), (G, K), (G, K, K + 1) or (G,)
    unseen_items: dict[str, Floats]  # item parameters by field: (Q,)
    unseen_query: dict[str, Any]  # every parameter by field: scalar, (K,) or (K, K + 1)
    report: dict[str, Any] = field(default_factory=dict)  # iterations, convergence, notes, ...

    @property
    def kind(self) -> type[ClickModel]:
        """The class of the model."""
        return MODELS[self.model]

    @cached_property
    def index(self) -> dict[Query, int]:
        """The place of each query."""
        return {query: q for q, query in enumerate(self.queries)}

    def group(self, q: int) -> int:
        """The set of shared parameters that query q uses."""
        return 0 if self.scope == "pooled" else q

    def of(self, query: Query, unseen: bool = False, K: int | None = None) -> ClickModel:
        """The model of a query.

        With ``unseen``, one more item, of id ``UNSEEN``, stands for all never seen; a query
        never seen has only that one. ``K`` extends the positions, with the values of the last, or
        of the other queries if these are pooled.
        """
        q = self.index.get(query)
        if q is None:
            return self._unseen_query(K)
        span = slice(self.offsets[q], self.offsets[q + 1])
        own, g = int(self.positions[q]), self.group(q)
        values: dict[str, Any] = {}
        for p in self.kind.PARAMETERS:
            value = self.estimates[p.field].value
            if p.kind == "item":
                more = [self.unseen_items[p.field][q]] if unseen else []
                values[p.field] = np.concatenate([value[span], more])
            else:
                fitted = value.shape[1] if self.scope == "pooled" and value.ndim > 1 else own
                values[p.field] = _sized(p, value[g], fitted, K or own)
        items = np.concatenate([self.item_ids[span], [UNSEEN] if unseen else []]).astype(np.int64)
        return self.kind(items=items, K=K or own, **values)

    def _unseen_query(self, K: int | None) -> ClickModel:
        own = int(self.positions.max(initial=1))
        values = {
            p.field: np.full(1, self.unseen_query[p.field])
            if p.kind == "item"
            else _sized(p, self.unseen_query[p.field], own, K or own)
            for p in self.kind.PARAMETERS
        }
        return self.kind(items=np.array([UNSEEN]), K=K or own, **values)

    def rows(self) -> pa.Table:
        """The rows of the models table."""
        parts = [self._position_rows()]
        if not any(p.kind == "item" for p in self.kind.PARAMETERS):
            n = len(self.item_ids)
            parts.append(
                self._rows(ITEMS, self._of_item(), n, item_id=self.item_ids, value=np.ones(n))
            )
        for p in self.kind.PARAMETERS:
            parts.append(self._item_rows(p) if p.kind == "item" else self._shared_rows(p))
            parts.append(self._unseen_rows(p))
        return pa.concat_tables(parts)

    def _rows(self, parameter: str, q: Ints | None, n: int, **columns: Any) -> pa.Table:
        ids = np.array([query.query_id for query in self.queries], dtype=np.int64)
        regions = [query.region_id for query in self.queries]
        full: dict[str, Any] = {
            "model": pa.repeat(self.model, n),
            "method": pa.repeat(self.method, n),
            "scope": pa.repeat(self.scope, n),
            "parameter": pa.repeat(parameter, n),
        }
        if q is not None:
            full["query_id"] = ids[q]
            full["region_id"] = pa.array(regions, pa.int64()).take(pa.array(q))
        full |= columns
        arrays = []
        for f in tables.MODELS:
            given = full.get(f.name)
            if given is None:
                arrays.append(pa.nulls(n, f.type))
            elif isinstance(given, np.ndarray) and given.dtype.kind == "f":
                arrays.append(pa.array(given, f.type, mask=np.isnan(given)))
            else:
                arrays.append(pa.array(given, f.type))
        return pa.table(arrays, schema=tables.MODELS)

    def _position_rows(self) -> pa.Table:
        Q = len(self.queries)
        K = self.positions.astype(np.float64)
        return self._rows(POSITIONS, np.arange(Q), Q, value=K, observations=self.serps)

    def _item_rows(self, p: Parameter) -> pa.Table:
        q = self._of_item()
        columns = _columns(self.estimates[p.field], np.arange(len(q)))
        return self._rows(p.name, q, len(q), item_id=self.item_ids, **columns)

    def _of_item(self) -> Ints:
        return np.repeat(np.arange(len(self.queries)), np.diff(self.offsets))

    def _shared_rows(self, p: Parameter) -> pa.Table:
        value = self.estimates[p.field].value
        G = len(value)
        pooled = self.scope == "pooled"
        longest = np.full(G, self.positions.max(initial=1)) if pooled else self.positions
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
        columns |= _columns(self.estimates[p.field], at)
        return self._rows(p.name, None if pooled else at[0], len(at[0]), **columns)

    def _unseen_rows(self, p: Parameter) -> pa.Table:
        """Rows without an item, or without a query, for what was never seen."""
        value = np.asarray(self.unseen_query[p.field], dtype=np.float64)
        if p.kind == "item":
            known, Q = self.unseen_items[p.field], len(self.queries)
            rows = self._rows(p.name, np.arange(Q), Q, value=known)
            return pa.concat_tables([rows, self._rows(p.name, None, 1, value=value.reshape(1))])
        if self.scope == "pooled":
            return tables.MODELS.empty_table()
        if p.kind == "scalar":
            return self._rows(p.name, None, 1, value=value.reshape(1))
        if p.kind == "position":
            K = np.arange(1, len(value) + 1)
            return self._rows(p.name, None, len(value), value=value, position=K)
        k, r = np.tril_indices(len(value))
        return self._rows(p.name, None, len(k), value=value[k, r], position=k + 1, previous=r)


def _columns(estimate: ParameterEstimate, at: Any) -> dict[str, Floats]:
    columns = {
        name: np.asarray(getattr(estimate, name))[at]
        for name in ("value", "low", "high", "observations")
    }
    if estimate.raw is not None:
        columns["raw"] = estimate.raw[at]
    return columns


def _sized(p: Parameter, value: Any, own: int, K: int) -> Any:
    """A shared parameter cut to its ``own`` positions, then extended to K by its last values.

    A transition beyond them is that of the last position at the same distance from the previous
    click, or at the largest distance there.
    """
    if p.kind == "scalar":
        return float(value)
    if p.kind == "position":
        return np.pad(value[:own], (0, max(K - own, 0)), mode="edge")[:K]
    if own >= K:
        return value[:K, : K + 1]
    wide = np.zeros((K, K + 1))
    wide[:own, : own + 1] = value[:own, : own + 1]
    for k in range(own, K):
        wide[k, 0] = value[own - 1, 0]
        distance = k + 1 - np.arange(1, k + 1)
        wide[k, 1 : k + 1] = value[own - 1, own - np.minimum(distance, max(own - 1, 1))]
    return wide


def averaged(value: Floats, weight: Floats, longest: Ints | None = None) -> Any:
    """The mean over groups (first axis), by weight; at each position over those that have it."""
    if not len(value):
        return 0.5
    if longest is None or value.ndim == 1:
        mean = np.tensordot(weight / max(float(weight.sum()), 1e-300), value, axes=1)
        return mean if mean.ndim else float(mean)
    at = weight[:, None] * (np.arange(value.shape[1]) < longest[:, None])
    share = at / np.maximum(at.sum(axis=0), 1e-300)
    return np.einsum("gk,gk...->k...", share, value)
