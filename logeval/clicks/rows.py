"""A fitted click model -> its rows in the tables ``models`` and ``queries``.

Rows of the tables ``models`` and ``queries`` -> fitted models, each row checked.

Rows from elsewhere may come without ``queries``: then a query has the items and positions that
its parameters speak of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from logeval.clicks.estimation.estimates import ParameterEstimate
from logeval.clicks.estimation.patterns import NO_REGION
from logeval.clicks.fitted import SCOPES, FittedClasses, FittedModel, averaged
from logeval.clicks.models.model import Parameter
from logeval.clicks.models.registry import classes_in, kind_of, model_names
from logeval.errors import LogevalError, unknown_names
from logeval.log.queries import Query
from logeval.running.arrays import Bools, Floats, Ints
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
        rows = rows.set_column(0, MODELS.field("model"), pa.repeat(fitted.model, rows.num_rows))
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


LONGEST_LIST = 1_000  # positions; a table per pair of positions still fits into memory
DEFAULT_K = 10  # positions of imported models that have no parameter per position
QUERY = ["query_id", "region_id"]
KEYS = {"query_id": 0, "region_id": NO_REGION, "item_id": 0, "position": 0, "previous": -1}
KEYS |= {"class": 0}
NEEDS = {  # what the rows of a parameter must name, by its kind
    "item": "a query of the model and one of its items",
    "position": "a position of its query, from 1",
    "transition": "a position of its query, from 1, and the previous click above it (0: none)",
    "scalar": "a query of the model",
}


class Listing(NamedTuple):
    """The queries of a model, their lists and their items, as a ``FittedModel`` has them."""

    queries: list[Query]
    positions: Ints  # (Q,)
    serps: Floats  # (Q,)
    item_ids: Ints  # (I,)
    offsets: Ints  # (Q + 1,)
    base: list[Ints] | None = None
    identified: Floats | None = None  # (Q,)


def fitted_of_rows(rows: pa.Table, queries: pa.Table | None, source: str) -> dict[str, FittedModel]:
    """The fitted models of a models table, and of a queries table where there is one."""
    frame, draws = _frame(rows, source), _draws(rows["draws"], source)
    listed = {} if queries is None else _by_model(queries)
    if without := [name for name in listed if name not in frame["model"].unique()]:
        raise LogevalError(f"{source}: {without[0]} has queries, but no parameters")
    found = {}
    for name, mine in frame.groupby("model", sort=False):
        label = f"{source}: {name}"
        listing = _listing(mine, listed.get(str(name)), label)
        read = _classes if mine["has_class"].any() else _fitted
        found[str(name)] = read(str(name), mine, listing, draws, label)
    return found


def _listing(rows: pd.DataFrame, listed: pd.DataFrame | None, label: str) -> Listing:
    if listed is None and not rows["has_query_id"].any():
        raise LogevalError(f"{label} has no query; give its rows a query_id")
    return _spoken_of(rows) if listed is None else _given(listed)


def _classes(
    name: str, rows: pd.DataFrame, listing: Listing, draws: Floats, label: str
) -> FittedModel:
    """A model with classes of users: the rows of each, and of their shares."""
    if not rows["has_class"].all():
        raise LogevalError(f"{label}: some rows have a class of users, and others have none")
    numbers = sorted(rows["class"].unique().tolist())
    C = len(numbers)
    if numbers != list(range(1, C + 1)):
        raise LogevalError(f"{label}: classes are numbered from 1, without gaps")
    of_share = rows["parameter"] == SHARE.name
    of = classes_in(name, C)
    if len(of) != C:
        raise LogevalError(f"{label} has {C} classes; its members have {len(of)}")
    parts = tuple(
        _fitted(one, rows[(rows["class"] == c) & ~of_share], listing, draws, f"{label} class {c}")
        for c, one in zip(numbers, of, strict=True)
    )
    mine = _numbered(rows[of_share], listing, False, label)
    mine = mine.assign(place=mine["class"] - 1)
    needs = "a query of the model and a class"
    share = Rows(mine, draws, f"{label} share", needs).put(
        mine["has_query_id"], ["q", "place"], np.ones((len(listing.queries), C), np.bool_)
    )
    wrong = np.abs(share.value.sum(axis=1) - 1.0) > 1e-6
    if wrong.any():
        query = listing.queries[int(wrong.argmax())]
        raise LogevalError(f"{label}: the shares of the classes of query {query} must add up to 1")
    first = parts[0]
    return FittedClasses(
        name, first.method, first.scope, estimates={"share": share}, unseen_items={},
        unseen_query={}, parts=parts, **listing._asdict(),
    )  # fmt: skip


def _frame(rows: pa.Table, source: str) -> pd.DataFrame:
    """The rows with numbers in place of nulls, and columns ``has_...`` that say where."""
    if not rows.num_rows:
        raise LogevalError(f"{source}: there are no rows, so no models")
    for name in ("model", "parameter"):
        missing = pc.is_null(rows[name]).to_numpy()
        if missing.any():
            raise LogevalError(f"{source}: row {int(missing.argmax()) + 1} has no {name}")
    columns: dict[str, Any] = {
        name: rows[name].to_numpy() for name in ("method", "scope", "parameter", *NUMBERS)
    }
    columns["model"] = _canonical(rows["model"])
    columns["prior"] = pc.cast(rows["prior"], pa.float64()).to_numpy()
    for name, instead in KEYS.items():
        columns[f"has_{name}"] = pc.is_valid(rows[name]).to_numpy()
        columns[name] = pc.fill_null(rows[name], instead).to_numpy()
    frame = pd.DataFrame(columns)
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
    flat = pc.list_flatten(column).to_numpy().astype(np.float64)
    if not np.isin(length, (0, D)).all() or not ((flat >= 0) & (flat <= 1)).all():
        raise LogevalError(
            f"{source}: draws are probabilities, and equally many of every row; fit again"
        )
    draws = np.full((len(length), D), np.nan)
    draws[length > 0] = flat.reshape(-1, D) if D else 0.0
    return draws


def _canonical(column: pa.ChunkedArray) -> np.ndarray:
    """The models' names as the papers print them."""
    names = column.to_numpy()
    given = pd.unique(names).tolist()
    model_names(given)  # all unknown ones in one message
    return pd.Series(names).map({name: model_names([name])[0] for name in given}).to_numpy()


def _by_model(queries: pa.Table) -> dict[str, pd.DataFrame]:
    """The rows of the queries table, by model."""
    frame = queries.to_pandas(integer_object_nulls=True)
    frame["model"] = _canonical(queries["model"]) if len(frame) else frame["model"]
    frame["region_id"] = pc.fill_null(queries["region_id"], NO_REGION).to_numpy()
    frame["serps"] = frame["serps"].astype(np.float64)
    return {str(name): mine for name, mine in frame.groupby("model", sort=False)}


def _queries(rows: Any) -> list[Query]:
    pairs = zip(np.atleast_1d(rows["query_id"]), np.atleast_1d(rows["region_id"]), strict=True)
    return [Query(int(q), None if r == NO_REGION else int(r)) for q, r in pairs]


def _given(rows: pd.DataFrame) -> Listing:
    """The queries as their table has them."""
    base = None
    if rows["base"].notna().any():
        base = [np.array([] if x is None else x, dtype=np.int64) for x in rows["base"]]
    return Listing(
        _queries(rows),
        rows["positions"].to_numpy(dtype=np.int64),
        rows["serps"].to_numpy(),
        np.concatenate([np.empty(0, np.int64), *rows["items"]]).astype(np.int64),
        np.cumsum([0, *rows["items"].map(len)]),
        base,
        rows["identified"].to_numpy(dtype=np.float64) if rows["identified"].notna().all() else None,
    )


def _spoken_of(rows: pd.DataFrame) -> Listing:
    """The queries, items and positions that parameters speak of."""
    own = rows[rows["has_query_id"]]
    queries = own[QUERY].drop_duplicates()
    place = pd.MultiIndex.from_frame(queries)
    pairs = own.loc[own["has_item_id"], [*QUERY, "item_id"]].drop_duplicates()
    q = place.get_indexer(pd.MultiIndex.from_frame(pairs[QUERY]))
    positions = np.full(len(place), int(rows["position"].max()) or DEFAULT_K, dtype=np.int64)
    largest = own[own["has_position"]].groupby(QUERY)["position"].max()
    positions[place.get_indexer(largest.index)] = largest.to_numpy(dtype=np.int64)
    return Listing(
        _queries(queries),
        positions,
        np.full(len(place), np.nan),
        pairs["item_id"].to_numpy(dtype=np.int64)[np.argsort(q, kind="stable")],
        np.searchsorted(np.sort(q), np.arange(len(place) + 1)),
    )


def _fitted(
    name: str, rows: pd.DataFrame, listing: Listing, draws: Floats, label: str
) -> FittedModel:
    if len(scopes := sorted(rows["scope"].unique())) > 1:
        raise LogevalError(f"{label} has rows of scope {' and of scope '.join(scopes)}")
    Q, K = len(listing.queries), int(listing.positions.max(initial=1))
    if K > LONGEST_LIST or (listing.positions < 1).any():
        raise LogevalError(f"{label}: lists have at least 1 and at most {LONGEST_LIST:,} positions")
    pooled, all_K = scopes[0] == "pooled", np.array([K])
    longest = all_K if pooled else listing.positions
    by_parameter = _by_parameter(name, _numbered(rows, listing, pooled, label), label)
    estimates: dict[str, ParameterEstimate] = {}
    unseen_items: dict[str, Floats] = {}
    unseen_query: dict[str, Any] = {}
    prior: dict[str, Bools] = {}
    for p in kind_of(name).PARAMETERS:
        mine = Rows(by_parameter[p.name], draws, f"{label} {p.name}", NEEDS[p.kind])
        of_query, of_item = (mine.rows[f"has_{key}"] for key in ("query_id", "item_id"))
        if p.kind == "item":
            every = np.ones(len(listing.item_ids), np.bool_)
            x, marks = mine.put(of_item, ["pair"], every), mine.marks(of_item, ["pair"], every)
            mean = float(x.value.mean()) if len(x.value) else 0.5
            each = mine.put(~of_item & of_query, ["q"], np.ones(Q, np.bool_), mean)
            rest = mine.put(~of_item & ~of_query, ["group"], np.ones(1, np.bool_), mean)
            unseen_items[p.field], unseen_query[p.field] = each.value, float(rest.value[0])
        else:
            at = ["group", "place", "previous"]
            x = mine.put(of_query | pooled, at, places(p, longest, K))
            marks = mine.marks(of_query | pooled, at, places(p, longest, K))
            mean = averaged(x.value, np.ones(len(x.value)), longest)
            if not pooled and not of_query.all():
                mean = mine.put(~of_query, at, places(p, all_K, K)).value[0]
            unseen_query[p.field] = mean
        estimates[p.field] = x
        prior |= {} if marks is None else {p.field: marks}
    return FittedModel(
        name,
        str(rows["method"].iloc[0]),
        scopes[0],
        estimates=estimates,
        unseen_items=unseen_items,
        unseen_query=unseen_query,
        prior=prior,
        **listing._asdict(),
    )


def _numbered(rows: pd.DataFrame, listing: Listing, pooled: bool, label: str) -> pd.DataFrame:
    """The rows with the number of their query, (query, item) pair and group; -1: there is none."""
    region = [NO_REGION if q.region_id is None else q.region_id for q in listing.queries]
    place = pd.MultiIndex.from_arrays([[q.query_id for q in listing.queries], region])
    item_query = np.repeat(np.arange(len(place)), np.diff(listing.offsets))
    pairs = pd.MultiIndex.from_arrays([item_query, listing.item_ids])
    for index, what in ((place, "query {0}"), (pairs, "item {1} of a query")):
        if index.has_duplicates:
            twice = what.format(*index[index.duplicated()][0])
            raise LogevalError(f"{label}: {twice} is listed twice")
    q = place.get_indexer(pd.MultiIndex.from_frame(rows[QUERY]))
    q[~rows["has_query_id"]] = -1
    return rows.assign(
        q=q,
        pair=pairs.get_indexer(pd.MultiIndex.from_arrays([q, rows["item_id"]])),
        group=np.where(rows["has_query_id"], -1 if pooled else q, 0),
        place=rows["position"] - 1,
    )


def _by_parameter(name: str, rows: pd.DataFrame, label: str) -> dict[str, pd.DataFrame]:
    """The rows of each parameter; all of them are there."""
    known = [p.name for p in kind_of(name).PARAMETERS]
    found = {str(p): mine for p, mine in rows.groupby("parameter", sort=False)}
    if unknown := sorted(set(found).difference(known)):
        names = ", ".join(sorted(known))
        raise LogevalError(f"{label} has no parameter {unknown[0]!r}; it has {names}")
    if lacking := [p for p in known if p not in found]:
        raise LogevalError(f"{label} lacks its parameter {lacking[0]!r}")
    return found


@dataclass(frozen=True)
class Rows:
    """The rows of one parameter."""

    rows: pd.DataFrame
    draws: Floats  # of all rows of the table
    label: str
    needs: str

    def put(
        self, which: Any, columns: list[str], used: Bools, instead: float | None = None
    ) -> ParameterEstimate:
        """The numbers of some rows in the places that ``columns`` name, which must be used.

        Every used place must have a row, unless there is a value to put there ``instead``.
        """
        rows, columns = self.rows[which], columns[: used.ndim]
        at = tuple(rows[name].to_numpy() for name in columns)
        inside = np.all([(0 <= i) & (i < n) for i, n in zip(at, used.shape, strict=True)], axis=0)
        inside[inside] = used[tuple(i[inside] for i in at)]
        for wrong, why in (
            (~inside, f"has no place; it must name {self.needs}"),
            (rows.duplicated(columns).to_numpy(), "is there twice"),
        ):
            if wrong.any():
                raise LogevalError(f"{self.label}: the row of {_keys(rows[wrong].iloc[0])} {why}")
        numbers = {name: np.full(used.shape, np.nan) for name in NUMBERS}
        for name, array in numbers.items():
            array[at] = rows[name].to_numpy()
        missing = used & np.isnan(numbers["value"])
        if instead is None and missing.any():
            first = tuple(int(x) for x in np.argwhere(missing)[0])
            raise LogevalError(
                f"{self.label} is incomplete: {int(missing.sum())} rows are missing, the first at "
                f"index {first}"
            )
        numbers["value"][np.isnan(numbers["value"])] = instead or 0.0
        mine = self.draws[rows.index]
        if not mine.size or np.isnan(mine).any():
            return ParameterEstimate(**numbers)
        draws = np.zeros((mine.shape[1], *used.shape))
        draws[(slice(None), *at)] = mine.T
        return ParameterEstimate(**numbers, draws=draws)

    def marks(self, which: Any, columns: list[str], used: Bools) -> Bools | None:
        """Which values rest on the prior, in the places that ``columns`` name; None: unknown."""
        rows = self.rows[which]
        if rows["prior"].isna().any():
            return None
        found = np.zeros(used.shape, dtype=np.bool_)
        found[tuple(rows[name].to_numpy() for name in columns[: used.ndim])] = rows["prior"] > 0
        return found


def _keys(row: Any) -> str:
    """What a row is of."""
    named = {"query": _queries(row)[0]} if row["has_query_id"] else {}
    named |= {name: row[name] for name in list(KEYS)[2:] if row[f"has_{name}"]}
    parts = [f"{name.removesuffix('_id')} {value}" for name, value in named.items()]
    return ", ".join(parts) or "all queries"
