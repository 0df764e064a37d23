"""Rows of the tables ``models`` and ``queries`` -> fitted models, each row checked.

Rows from elsewhere may come without ``queries``: then a query has the items and positions that
its parameters speak of.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from logeval.clicks.estimation.estimates import ParameterEstimate
from logeval.clicks.estimation.patterns import NO_REGION
from logeval.clicks.fitted import SCOPES, FittedModel, averaged
from logeval.clicks.model_rows import NUMBERS, places
from logeval.clicks.models.registry import MODELS, model_names
from logeval.errors import LogevalError, unknown_names
from logeval.log.queries import Query
from logeval.running.arrays import Bools, Floats, Ints

LONGEST_LIST = 1_000  # positions; a table per pair of positions still fits into memory
DEFAULT_K = 10  # positions of imported models that have no parameter per position
KEYS = ["query_id", "region_id"]
OPTIONAL = {"query_id": 0, "region_id": NO_REGION, "item_id": 0, "position": 0, "previous": -1}
IDENTITY = ["model", "parameter", "has_query_id", *KEYS, "has_item_id", "item_id", "position"]
IDENTITY += ["previous"]
FORMER = ("positions", "items")  # "parameters" in which older versions kept the queries


class Listing(NamedTuple):
    """The queries of a model, their lists and their items."""

    place: pd.MultiIndex  # (query_id, region_id) of each query
    positions: Ints  # (Q,)
    serps: Floats  # (Q,)
    item_query: Ints  # (I,) ascending
    item_ids: Ints  # (I,)
    base: list[Ints] | None

    @classmethod
    def given(cls, rows: pd.DataFrame) -> Listing:
        """The queries as their table has them."""
        length = rows["items"].map(len).to_numpy(dtype=np.int64)
        items = np.concatenate([np.empty(0, np.int64), *rows["items"]]).astype(np.int64)
        base = None
        if rows["base"].notna().any():
            base = [np.array([] if x is None else x, dtype=np.int64) for x in rows["base"]]
        return cls(
            pd.MultiIndex.from_frame(rows[KEYS]),
            rows["positions"].to_numpy(dtype=np.int64),
            rows["serps"].to_numpy(),
            np.repeat(np.arange(len(rows)), length),
            items,
            base,
        )

    @classmethod
    def derived(cls, rows: pd.DataFrame) -> Listing:
        """The queries, items and positions that parameters speak of."""
        own = rows[rows["has_query_id"]]
        place = pd.MultiIndex.from_frame(own[KEYS].drop_duplicates())
        pairs = own.loc[own["has_item_id"], [*KEYS, "item_id"]].drop_duplicates()
        pair_query = place.get_indexer(pd.MultiIndex.from_frame(pairs[KEYS]))
        order = np.argsort(pair_query, kind="stable")
        top = int(rows["position"].max())
        positions = np.full(len(place), top if top else DEFAULT_K, dtype=np.int64)
        largest = own[own["has_position"]].groupby(KEYS)["position"].max()
        positions[place.get_indexer(largest.index)] = largest.to_numpy(dtype=np.int64)
        items = pairs["item_id"].to_numpy(dtype=np.int64)[order]
        serps = np.full(len(place), np.nan)
        return cls(place, positions, serps, pair_query[order], items, None)

    def query_of(self, rows: pd.DataFrame, label: str) -> Ints:
        """The number of the query of each row."""
        q = self.place.get_indexer(pd.MultiIndex.from_frame(rows[KEYS]))
        if (q < 0).any():
            query = _query(rows[q < 0].iloc[0])
            raise LogevalError(f"{label} has parameters of query {query}, not listed")
        return q

    def pair_of(self, q: Ints, item: Ints, label: str) -> Ints:
        """The number of each (query, item) pair."""
        ids = np.unique(self.item_ids)
        pairs = self.item_query * len(ids) + np.searchsorted(ids, self.item_ids)
        code = np.minimum(np.searchsorted(ids, item), max(len(ids) - 1, 0))
        at = pd.Index(pairs).get_indexer(pd.Index(q * len(ids) + code))
        wrong = (at < 0) | (self.item_ids[at] != item) if len(ids) else np.ones(len(q), np.bool_)
        if wrong.any():
            raise LogevalError(f"{label}: item {item[wrong][0]} is not in the list of its query")
        return at


def fitted_of_rows(rows: pa.Table, queries: pa.Table | None, source: str) -> dict[str, FittedModel]:
    """The fitted models of a models table, and of a queries table where there is one."""
    frame = _frame(rows, source)
    _check(frame, source)
    draws = Draws(rows["draws"], source)
    listed = {} if queries is None else _by_model(queries, source)
    out = {}
    for name, mine in frame.groupby("model", sort=False):
        out[str(name)] = _fitted(str(name), mine, listed.get(str(name)), draws, source)
    without = [name for name in listed if name not in out]
    if without:
        raise LogevalError(f"{source}: {without[0]} has queries, but no parameters")
    return out


def _frame(rows: pa.Table, source: str) -> pd.DataFrame:
    """The rows with numbers in place of nulls, and columns ``has_...`` that say where."""
    if not rows.num_rows:
        raise LogevalError(f"{source}: there are no rows, so no models")
    for name in ("model", "parameter"):
        missing = pc.is_null(rows[name]).to_numpy()
        if missing.any():
            raise LogevalError(f"{source}: row {int(missing.argmax()) + 1} has no {name}")
    columns: dict[str, Any] = {
        name: rows[name].to_numpy() for name in ("method", "scope", "parameter")
    }
    columns["model"] = _canonical(rows["model"])
    for name, instead in OPTIONAL.items():
        columns[f"has_{name}"] = pc.is_valid(rows[name]).to_numpy()
        columns[name] = pc.fill_null(rows[name], instead).to_numpy()
    for name in NUMBERS:
        columns[name] = rows[name].to_numpy()
    columns["row"] = np.arange(rows.num_rows)
    return pd.DataFrame(columns)


class Draws:
    """The draws of all rows: as many of every row that has some."""

    def __init__(self, column: pa.ChunkedArray, source: str) -> None:
        length = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
        self.D = int(length.max(initial=0))
        flat = pc.list_flatten(column).to_numpy().astype(np.float64)
        if not np.isin(length, (0, self.D)).all() or not ((flat >= 0) & (flat <= 1)).all():
            raise LogevalError(
                f"{source}: draws are probabilities, and equally many of every row; fit again"
            )
        self._has, self._flat = length > 0, flat.reshape(-1, max(self.D, 1))
        self._place = np.cumsum(self._has) - 1

    def of(self, rows: pd.DataFrame, shape: tuple[int, ...], at: Any) -> Floats | None:
        """Those of some rows in their places, (D, ...); None unless every row has them."""
        row = rows["row"].to_numpy()
        if not self.D or not self._has[row].all():
            return None
        out = np.zeros((self.D, *shape))
        out[(slice(None), *at)] = self._flat[self._place[row]].T
        return out


def _canonical(column: pa.ChunkedArray) -> np.ndarray:
    """The models' names as the papers print them."""
    names = column.to_numpy()
    given = pd.unique(names).tolist()
    model_names(given)  # all unknown ones in one message
    return pd.Series(names).map({name: model_names([name])[0] for name in given}).to_numpy()


def _check(frame: pd.DataFrame, source: str) -> None:
    """Refuse rows that would be lost, or read as something else."""
    former = frame[frame["parameter"].isin(FORMER)]
    if len(former):
        raise LogevalError(
            f"{source}: was written by an older version, which kept queries in rows "
            f"{former['parameter'].iloc[0]!r}; fit the models again"
        )
    bad = frame[~frame["value"].between(0.0, 1.0)]
    if len(bad):
        row = bad.iloc[0]
        raise LogevalError(
            f"{source}: {row['parameter']} = {row['value']} of {row['model']} is not a probability"
        )
    scopes = sorted(set(frame["scope"].unique()) - set(SCOPES))
    if scopes:
        raise unknown_names("scope", scopes, SCOPES)
    _refuse(frame, frame["has_position"] & (frame["position"] < 1), "positions begin at 1", source)
    too_long = frame["has_position"] & (frame["position"] > LONGEST_LIST)
    _refuse(frame, too_long, f"lists have at most {LONGEST_LIST:,} positions", source)
    no_query = frame["has_item_id"] & ~frame["has_query_id"]
    _refuse(frame, no_query, "an item needs its query_id", source)
    _refuse(frame, frame.duplicated(IDENTITY), "there are two rows of the same value", source)


def _refuse(rows: pd.DataFrame, wrong: pd.Series, why: str, source: str) -> None:
    if wrong.any():
        row = rows[wrong].iloc[0]
        why = why.format(position=row["position"])
        raise LogevalError(f"{source}: {row['parameter']} of {row['model']}: {why}")


def _by_model(queries: pa.Table, source: str) -> dict[str, pd.DataFrame]:
    """The rows of the queries table, by model."""
    frame = queries.to_pandas(integer_object_nulls=True)
    frame["model"] = _canonical(queries["model"]) if len(frame) else frame["model"]
    frame["region_id"] = pc.fill_null(queries["region_id"], NO_REGION).to_numpy()
    frame["serps"] = frame["serps"].astype(np.float64)
    for why, wrong in (
        ("is listed twice", frame.duplicated(["model", *KEYS])),
        ("needs positions from 1", frame["positions"] < 1),
    ):
        if wrong.any():
            row = frame[wrong].iloc[0]
            raise LogevalError(f"{source}: query {_query(row)} of {row['model']} {why}")
    return {str(name): mine for name, mine in frame.groupby("model", sort=False)}


def _query(row: Any) -> Query:
    q, r = (int(row[key]) for key in KEYS)
    return Query(q, None if r == NO_REGION else r)


def _fitted(
    name: str, rows: pd.DataFrame, listed: pd.DataFrame | None, draws: Draws, source: str
) -> FittedModel:
    by_parameter = _by_parameter(name, rows, source)
    scope = str(rows["scope"].iloc[0])
    if rows["scope"].nunique() > 1:
        raise LogevalError(f"{source}: {name} has rows of scope per-query and of scope pooled")
    if listed is None and not rows["has_query_id"].any():
        raise LogevalError(f"{source}: {name} has no query; give its rows a query_id")
    found = Listing.derived(rows) if listed is None else Listing.given(listed)
    K = int(found.positions.max(initial=1))
    pooled, all_K = scope == "pooled", np.array([K])
    estimates: dict[str, ParameterEstimate] = {}
    unseen_items: dict[str, Floats] = {}
    unseen_query: dict[str, Any] = {}
    for p in MODELS[name].PARAMETERS:
        mine, label = by_parameter[p.name], f"{source}: {name} {p.name}"
        seen, rest = mine[mine["has_query_id"]], mine[~mine["has_query_id"]]
        q = found.query_of(seen, f"{source}: {name}")
        for some, longest in ((seen, K if pooled else found.positions[q]), (rest, K)):
            why = "there is a row at position {position}, beyond the positions of its query"
            _refuse(some, some["position"] > longest, why, source)
        if p.kind == "item":
            has_item = seen["has_item_id"].to_numpy()
            of_items, others = seen[has_item], seen[~has_item]
            i = found.pair_of(q[has_item], of_items["item_id"].to_numpy(), label)
            used = np.ones(len(found.item_ids), dtype=np.bool_)
            value = (x := _placed(of_items, used, (i,), label, draws)).value
            mean = float(value.mean()) if len(value) else 0.5
            unseen_items[p.field] = np.full(len(found.place), mean)
            unseen_items[p.field][q[~has_item]] = others["value"].to_numpy()
            unseen_query[p.field] = float(rest["value"].iloc[0]) if len(rest) else mean
        else:
            longest = all_K if pooled else found.positions
            of_all = _at(rest, np.zeros(len(rest), dtype=np.int64))
            which, at = (rest, of_all) if pooled else (seen, _at(seen, q))
            x = _placed(which, places(p, longest, K), at, label, draws)
            unseen_query[p.field] = averaged(x.value, np.ones(len(x.value)), longest)
            if len(rest):
                one = _placed(rest, places(p, all_K, K), of_all, label, draws)
                unseen_query[p.field] = one.value[0]
        estimates[p.field] = x
    return FittedModel(
        name,
        str(rows["method"].iloc[0]),
        scope,
        [Query(int(q), None if r == NO_REGION else int(r)) for q, r in found.place],
        found.positions,
        found.serps,
        found.item_ids,
        np.searchsorted(found.item_query, np.arange(len(found.place) + 1)),
        estimates,
        unseen_items,
        unseen_query,
        found.base,
    )


def _by_parameter(name: str, rows: pd.DataFrame, source: str) -> dict[str, pd.DataFrame]:
    """The rows of each parameter; all of them are there, and have what their kind needs."""
    kinds = {p.name: p.kind for p in MODELS[name].PARAMETERS}
    found = {str(p): mine for p, mine in rows.groupby("parameter", sort=False)}
    for parameter in sorted(found):
        if parameter not in kinds:
            raise LogevalError(
                f"{source}: {name} has no parameter {parameter!r}; it has "
                f"{', '.join(sorted(kinds))}"
            )
    for parameter, kind in kinds.items():
        if parameter not in found:
            raise LogevalError(f"{source}: {name} lacks its parameter {parameter!r}")
        mine = found[parameter]
        if kind in ("position", "transition"):
            _refuse(mine, ~mine["has_position"], "the position is missing", source)
        if kind == "transition":
            why = "previous is missing (0: no click above)"
            _refuse(mine, ~mine["has_previous"], why, source)
            outside = (mine["previous"] < 0) | (mine["previous"] >= mine["position"])
            why = "previous must be from 0 (no click above) to position - 1"
            _refuse(mine, outside, why, source)
    return found


def _at(rows: pd.DataFrame, group: Ints) -> tuple[Ints, ...]:
    """Where the values of a shared parameter are; of a scalar only the first counts."""
    return group, rows["position"].to_numpy() - 1, rows["previous"].to_numpy()


def _placed(
    rows: pd.DataFrame, used: Bools, at: tuple[Ints, ...], label: str, draws: Draws
) -> ParameterEstimate:
    """The numbers of the rows in their places; every used place must have its row."""
    at = at[: used.ndim]
    numbers = {name: np.full(used.shape, np.nan) for name in NUMBERS}
    for name, array in numbers.items():
        array[at] = rows[name].to_numpy()
    value = numbers["value"]
    value[~used & np.isnan(value)] = 0.0
    if np.isnan(value).any():
        where = tuple(int(x) for x in np.argwhere(np.isnan(value))[0])
        raise LogevalError(
            f"{label} is incomplete: {int(np.isnan(value).sum())} rows are missing, "
            f"the first at index {where}"
        )
    return ParameterEstimate(**numbers, draws=draws.of(rows, used.shape, at))
