"""Fitted click models as tables of arrays, and back.

A row of the table ``models`` is one parameter of one query, its lists as the arrays are: in the
order of the query's items; of its positions; of (1, none), (2, none), (2, 1), (3, none), ... where
the previous click matters; or of the classes of users.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from logeval.clicks.estimation.estimates import ParameterEstimate
from logeval.clicks.fitted import FittedClasses, FittedModel
from logeval.clicks.models.model import Parameter
from logeval.clicks.models.registry import classes_in, kind_of
from logeval.errors import LogevalError
from logeval.log.queries import Query
from logeval.running.arrays import Bools, Floats, Ints
from logeval.storage.schemas import PERIODS, QUERIES
from logeval.storage.tables import list_column

SHARE = "share"  # of the classes of users
NUMBERS = ("value", "low", "high", "observations", "raw")  # of a ParameterEstimate


class Listing(NamedTuple):
    """The queries of a model, their lists and their items, as a ``FittedModel`` has them."""

    queries: list[Query]
    positions: Ints  # (Q,)
    serps: Floats  # (Q,)
    item_ids: Ints  # (I,)
    offsets: Ints  # (Q + 1,)
    base: list[Ints] | None = None
    identified: Floats | None = None  # (Q,)


def places(p: Parameter, listing: Listing | FittedModel, scope: str) -> Bools:
    """Which values of a parameter there are, in the shape of its arrays.

    (I,), or, with lists of different lengths, (G,), (G, K) or (G, K, K + 1).
    """
    if p.kind == "item":
        return np.ones(len(listing.item_ids), dtype=np.bool_)
    longest = listing.positions
    longest = longest.max(initial=1, keepdims=True) if scope == "pooled" else longest
    K = np.arange(int(longest.max(initial=1)))
    if p.kind == "position":
        return K < longest[:, None]
    if p.kind == "transition":
        return (K < longest[:, None])[..., None] & (np.arange(len(K) + 1) <= K[:, None])
    return np.ones(len(longest), dtype=np.bool_)


# -- to tables --------------------------------------------------------------------------------


def arrays_of(fitted: FittedModel, period: int | None = None) -> pa.Table:
    """The rows of the table ``periods``, of which ``models`` has all columns but the first."""
    same: dict[str, Any] = {"period": period, "model": fitted.model, "method": fitted.method}
    same["scope"] = fitted.scope
    if not isinstance(fitted, FittedClasses):
        return pa.concat_tables(_part(fitted, same))
    tables = [
        pa.concat_tables(_part(part, same | {"class": c})) for c, part in enumerate(fitted.parts, 1)
    ]
    q, share = range(len(fitted.queries)), fitted.estimates[SHARE]
    used = np.ones(share.value.shape, dtype=np.bool_)
    return pa.concat_tables([*tables, _rows(fitted, same | {"parameter": SHARE}, share, used, q)])


def _part(fitted: FittedModel, same: dict[str, Any]) -> Iterator[pa.Table]:
    """The rows of a model, or of one class of its users."""
    q = range(len(fitted.queries))
    for p in fitted.kind.PARAMETERS:
        x, keys = fitted.estimates[p.field], same | {"parameter": p.name}
        used, marks = places(p, fitted, fitted.scope), fitted.prior.get(p.field)
        if p.kind == "item":
            length = np.diff(fitted.offsets, append=len(used))
            unseen = [*fitted.unseen_items[p.field], fitted.unseen_query[p.field]]
            more = {"items": lists_of(length, fitted.item_ids), "unseen": pa.array(unseen)}
            if fitted.shown is not None:
                more["shown"] = lists_of(length, fitted.shown)
            yield _rows(fitted, keys, x, used, [*q, None], marks, length, **more)
        else:
            own = [None] if fitted.scope == "pooled" else q
            yield _rows(fitted, keys, x, used, own, marks)


def _rows(
    fitted: FittedModel,
    same: dict[str, Any],
    x: ParameterEstimate,
    used: Bools,
    q: Sequence[int | None],
    marks: Bools | None = None,
    length: Ints | None = None,
    **columns: pa.Array,
) -> pa.Table:
    """The values in the places that are used, a list for each of the queries number q."""
    if length is None:
        length = used.reshape(len(used), -1).sum(axis=1)
    columns |= {k: pa.array([v] * len(q), PERIODS.field(k).type) for k, v in same.items()}
    columns |= query_columns(fitted.queries, q)
    for name in NUMBERS:
        if (numbers := getattr(x, name)) is not None:
            columns[name] = lists_of(length, numbers[used])
    if marks is not None:
        columns["prior"] = lists_of(length, marks[used])
    if x.draws is not None and len(x.draws):
        columns["draws"] = lists_of(length, list_column(x.draws[:, used].T.astype(np.float32)))
    return filled(columns, PERIODS)


def filled(columns: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """A table of those of its columns that there are, the others null."""
    n = len(next(iter(columns.values())))
    arrays = [columns[f.name] if f.name in columns else pa.nulls(n, f.type) for f in schema]
    return pa.table(arrays, schema=schema)


def lists_of(length: Ints, values: Any, null: Bools | None = None) -> pa.ListArray:
    """A column of lists from their lengths and all values, one list after the other."""
    offsets = pa.array(np.concatenate([[0], np.cumsum(length)]), pa.int32())
    mask = None if null is None else pa.array(null)
    if not isinstance(values, pa.Array):
        values = pa.array(values, from_pandas=True)
    return pa.ListArray.from_arrays(offsets, values, mask=mask)


def query_columns(queries: Sequence[Query], q: Any) -> dict[str, pa.Array]:
    """query_id and region_id of rows that are of the queries number q; None: of none."""
    ids, regions = zip(*queries, strict=True) if queries else ((), ())
    columns = {"query_id": pa.array(ids, pa.int64()), "region_id": pa.array(regions, pa.int64())}
    return {name: column.take(pa.array(q, pa.int64())) for name, column in columns.items()}


def query_rows(fitted: FittedModel) -> pa.Table:
    """The rows of the queries table."""
    Q = len(fitted.queries)
    columns = query_columns(fitted.queries, np.arange(Q)) | {
        "model": pa.repeat(fitted.model, Q),
        "serps": pa.array(fitted.serps, mask=np.isnan(fitted.serps)).cast(pa.int64()),
        "positions": pa.array(fitted.positions, pa.int32()),
        "items": lists_of(np.diff(fitted.offsets), fitted.item_ids),
    }
    if fitted.base is not None:
        length = np.array([len(shown) for shown in fitted.base], dtype=np.int64)
        every = np.concatenate([*fitted.base, np.empty(0, dtype=np.int64)]).astype(np.int64)
        columns["base"] = lists_of(length, every, null=length == 0)
    if fitted.identified is not None:
        columns["identified"] = pa.array(fitted.identified)
    return filled(columns, QUERIES)


# -- and back ---------------------------------------------------------------------------------


def listings(queries: pa.Table) -> dict[str, Listing]:
    """By model, what the queries table says."""
    return {name: _listing(mine) for name, mine in _by(queries, "model")}


def _by(table: pa.Table, column: str) -> Iterator[tuple[Any, pa.Table]]:
    """The rows of each value of a column that has one."""
    for value in pc.unique(table[column]).drop_null().to_pylist():
        yield value, table.filter(pc.equal(table[column], value))


def _listing(rows: pa.Table) -> Listing:
    ids, regions, base = (rows[name].to_pylist() for name in ("query_id", "region_id", "base"))
    known = any(shown is not None for shown in base)
    identified = rows["identified"]
    return Listing(
        [Query(*query) for query in zip(ids, regions, strict=True)],
        rows["positions"].to_numpy().astype(np.int64),
        rows["serps"].cast(pa.float64()).to_numpy(),
        pc.list_flatten(rows["items"]).to_numpy(),
        np.concatenate([[0], np.cumsum(pc.list_value_length(rows["items"]).to_numpy())]),
        [np.array(shown or [], dtype=np.int64) for shown in base] if known else None,
        None if identified.null_count else identified.to_numpy(),
    )


def fitted_of(
    arrays: pa.Table, listed: Mapping[str, Listing], source: str
) -> dict[str, FittedModel]:
    """The fitted models of the rows of ``models``, or of a period."""
    found: dict[str, FittedModel] = {}
    for name, mine in _by(arrays, "model"):
        label, listing = f"{source}: {name}", listed[name]
        of_class = [of for _, of in _by(mine, "class")]
        if not of_class:
            found[name] = _fitted(name, mine, listing, label)
            continue
        kinds = classes_in(name, len(of_class))
        if len(kinds) != len(of_class):
            raise LogevalError(f"{label} has {len(of_class)} classes; its members {len(kinds)}")
        parts = tuple(_fitted(k, of, listing, label) for k, of in zip(kinds, of_class, strict=True))
        used = np.ones((len(listing.queries), len(parts)), dtype=np.bool_)
        shares = mine.filter(pc.equal(mine["parameter"], SHARE))
        share = {SHARE: _estimate(shares, used, label)}
        first = parts[0]
        found[name] = FittedClasses(
            name, first.method, first.scope, estimates=share, unseen_items={}, unseen_query={},
            parts=parts, **listing._asdict(),
        )  # fmt: skip
    return found


def _fitted(name: str, rows: pa.Table, listing: Listing, label: str) -> FittedModel:
    """A model, or one class of its users."""
    scope = rows["scope"][0].as_py()
    estimates, unseen_items, unseen_query, prior, shown = {}, {}, {}, {}, None
    for p in kind_of(name).PARAMETERS:
        mine = rows.filter(pc.equal(rows["parameter"], p.name))
        used = places(p, listing, scope)
        if p.kind == "item":
            unseen = mine["unseen"].to_numpy()
            unseen_items[p.field], unseen_query[p.field] = unseen[:-1], float(unseen[-1])
            shown = _marks(mine["shown"], used)
        estimates[p.field] = _estimate(mine, used, f"{label} {p.name}")
        if (marks := _marks(mine["prior"], used)) is not None:
            prior[p.field] = marks
    return FittedModel(
        name, rows["method"][0].as_py(), scope, estimates=estimates, unseen_items=unseen_items,
        unseen_query=unseen_query, prior=prior, shown=shown, **listing._asdict(),
    )  # fmt: skip


def _estimate(rows: pa.Table, used: Bools, label: str) -> ParameterEstimate:
    """The lists of a parameter in the places that are used."""
    numbers: dict[str, Any] = {}
    for name in NUMBERS:
        values = pc.list_flatten(rows[name]).to_numpy()
        if name == "raw" and not len(values):
            continue
        if len(values) != used.sum():
            raise LogevalError(
                f"{label} is not of the items and positions of its queries; fit again"
            )
        numbers[name] = np.full(used.shape, 0.0 if name == "value" else np.nan)
        numbers[name][used] = values
    each = pc.list_flatten(rows["draws"])
    if len(each) == used.sum() and len(each):
        draws = pc.list_flatten(each).to_numpy().reshape(len(each), -1)
        if not np.isnan(draws).any():
            numbers["draws"] = np.zeros((draws.shape[1], *used.shape))
            numbers["draws"][:, used] = draws.T
    return ParameterEstimate(**numbers)


def _marks(lists: pa.ChunkedArray, used: Bools) -> Bools | None:
    """Marks in the places that are used; None where they are not known."""
    marks = pc.list_flatten(lists)
    if lists.null_count or marks.null_count or not len(lists):
        return None
    found = np.zeros(used.shape, dtype=np.bool_)
    found[used] = marks.to_numpy()
    return found
