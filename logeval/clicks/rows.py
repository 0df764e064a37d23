"""Fitted click models as JSON, and parameters of click models one by one, as tables for people.

JSON has the rows of the table ``models``, nulls left out, and of ``queries``. From elsewhere it may
come without the latter: then a query has the items and positions that its parameters speak of.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Annotated, Any, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from logeval.clicks.disk import (
    NUMBERS,
    SHARE,
    Listing,
    arrays_of,
    filled,
    fitted_of,
)
from logeval.clicks.fitted import FittedClasses, FittedModel
from logeval.clicks.models.registry import classes_in, kind_of, model_names
from logeval.errors import LogevalError, printable
from logeval.log.queries import Query
from logeval.running.arrays import Ints
from logeval.storage.schemas import MODELS, PARAMETERS

LONGEST_LIST = 1_000  # positions; a table per pair of positions still fits into memory
DEFAULT_K = 10  # positions of imported models that have no parameter per position
EXAMPLE = (
    '{"rows": [{"model": "DCM", "query_id": 1, "parameter": "attraction", "items": [7, 8], '
    '"value": [0.5, 0.2]}, {"model": "DCM", "query_id": 1, "parameter": "termination", '
    '"value": [0.7, 0.4]}]}'
)
Kinds = dict[tuple[int | None, str], str]  # what parameters depend on, by class and name
Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Amounts = list[Annotated[float, Field(ge=0.0, allow_inf_nan=False)] | None] | None
Id = Annotated[int, Field(ge=-(2**63), lt=2**63)]


class Given(BaseModel):
    """What a row may have; what else it has is an error."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    model: str
    query_id: Id | None = None
    region_id: Id | None = None

    @property
    def query(self) -> Query | None:
        """None: of no query."""
        return None if self.query_id is None else Query(self.query_id, self.region_id)


class Row(Given):
    """A row of the table ``models``."""

    parameter: str
    value: list[Probability]
    method: str = "truth"
    scope: Literal["partial", "per-query", "pooled"] = "per-query"
    number: int | None = Field(None, alias="class")
    items: list[Id] | None = None
    unseen: Probability | None = None
    low: Amounts = None
    high: Amounts = None
    observations: Amounts = None
    raw: Amounts = None
    prior: list[bool | None] | None = None
    draws: list[list[Probability]] | None = None

    @model_validator(mode="after")
    def fits(self) -> Self:
        """All lists have the length of the values; intervals end where they should."""
        n, lists = len(self.value), (*NUMBERS, "prior", "draws")
        if wrong := [f for f in lists if len(getattr(self, f) or self.value) != n]:
            raise ValueError(f"{wrong[0]} must have as many elements as value, {n}")
        ends = zip(self.low or [], self.high or [], strict=False)
        if any(low > high for low, high in ends if low is not None and high is not None):
            raise ValueError("low must be at most high")
        return self

    def lists(self) -> dict[str, Any]:
        """As in the table, where intervals and observations that are not known are null."""
        unknown = dict.fromkeys(("low", "high", "observations"), [None] * len(self.value))
        return unknown | self.model_dump(by_alias=True, exclude_none=True)


class Listed(Given):
    """A row of the table ``queries``."""

    query_id: Id
    positions: Annotated[int, Field(ge=1, le=LONGEST_LIST)]
    items: list[Id]
    serps: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    base: list[Id] | None = None
    identified: Probability | None = None

    @model_validator(mode="after")
    def fits(self) -> Self:
        """No list has an item twice, and the one shown most only those of the query."""
        for ids in (self.items, self.base or []):
            if twice := [i for i, n in Counter(ids).items() if n > 1]:
                raise ValueError(f"item {twice[0]} is twice in a list")
        if strange := sorted(set(self.base or []) - set(self.items)):
            raise ValueError(f"item {strange[0]} of base is not one of the items")
        return self


class Rows(BaseModel):
    """A file of models."""

    model_config = ConfigDict(extra="forbid")

    rows: Annotated[list[Row], Field(min_length=1)]
    queries: list[Listed] | None = None
    names: dict[str, dict[str, str]] | None = None
    table: str = "models"


def rows_of(fitted: FittedModel) -> pa.Table:
    """One row per value, in the order of the lists, and then those of items never seen."""
    arrays = arrays_of(fitted)
    length = pc.list_value_length(arrays["value"]).to_numpy()
    parent = np.repeat(np.arange(len(length)), length)
    at = np.arange(len(parent)) - np.repeat(np.cumsum(length) - length, length)
    same = ["model", "method", "scope", "query_id", "region_id", "parameter", "class"]
    columns: dict[str, Any] = {name: arrays[name].take(pa.array(parent)) for name in same}
    of = zip(arrays["class"].to_pylist(), arrays["parameter"].to_pylist(), strict=True)
    kinds = _kinds(fitted.model, len(fitted.classes) * isinstance(fitted, FittedClasses))
    kind = np.array([kinds[key] for key in of])[parent]
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


def _kinds(name: str, C: int) -> Kinds:
    """What the parameters of each of C classes depend on; C = 0: users do not differ."""
    if not C:
        return {(None, p.name): p.kind for p in kind_of(name).PARAMETERS}
    kinds = enumerate(classes_in(name, C), 1)
    found: Kinds = {(c, p.name): p.kind for c, kind in kinds for p in kind_of(kind).PARAMETERS}
    return found | {(None, SHARE): "class"}


def _flat(lists: pa.ChunkedArray, length: Ints) -> pa.ChunkedArray:
    """The elements of lists, one after the other; nulls where a list is null."""
    there = np.repeat(pc.is_valid(lists).to_numpy(), length)
    return pc.list_flatten(lists).take(pa.array(np.cumsum(there) - 1, mask=~there))


# -- from elsewhere ---------------------------------------------------------------------------


def read_rows(text: str, source: str) -> tuple[dict[str, FittedModel], dict[str, dict[str, str]]]:
    """The fitted models of a text, and the names of their ids."""
    try:
        given = json.loads(text)
        found = Rows.model_validate({"rows": given} if isinstance(given, list) else given)
    except ValidationError as error:
        first = error.errors()[0]
        place = printable([".".join(map(str, first["loc"]))])
        raise LogevalError(
            f"{source}: not rows of the models table ({place}: {first['msg']}); write {EXAMPLE}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise LogevalError(
            f"{source}: not rows of the models table ({error}); write {EXAMPLE}"
        ) from None
    every = [one.model for one in [*found.rows, *(found.queries or [])]]
    model_names(every)  # all unknown ones in one message
    name_of = {name: model_names([name])[0] for name in every}
    rows, listed = (_by_name(x, name_of) for x in (found.rows, found.queries or []))
    if found.queries is not None and (wrong := sorted(set(rows) ^ set(listed))):
        raise LogevalError(f"{source}: {wrong[0]} has queries, but no parameters, or the reverse")
    own: dict[str, Any] = dict.fromkeys(rows) if found.queries is None else listed
    models = {name: _fitted(name, rows[name], own[name], f"{source}: {name}") for name in rows}
    return models, found.names or {}


def _by_name(given: Any, name_of: dict[str, str]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for one in given:
        found.setdefault(name_of[one.model], []).append(one)
    return found


def _spoken_of(rows: list[Row], kinds: Kinds, label: str) -> list[Listed]:
    """The queries, items and positions that parameters speak of."""
    items: dict[Query, list[int]] = {}
    longest: dict[Query | None, int] = {}
    for row in rows:
        if row.query is not None:
            items[row.query] = items.get(row.query) or row.items or []
        kind, n = kinds[row.number, row.parameter], len(row.value)
        if kind in ("position", "transition"):
            longest[row.query] = n if kind == "position" else int((2 * n) ** 0.5)  # K (K + 1) / 2
    most = longest.get(None, DEFAULT_K)
    if max([most, *longest.values()]) > LONGEST_LIST:
        raise LogevalError(f"{label}: lists have at least 1 and at most {LONGEST_LIST:,} positions")
    every = {q: longest.get(q, most) for q in items}
    return [
        Listed(model="", query_id=q[0], region_id=q[1], positions=every[q], items=own)
        for q, own in items.items()
    ]


def _fitted(name: str, rows: list[Row], listed: list[Listed] | None, label: str) -> FittedModel:
    """A model of rows, put in the order of its queries."""
    C = len({row.number for row in rows} - {None})
    kinds = _kinds(name, C)
    if strange := [row for row in rows if (row.number, row.parameter) not in kinds]:
        names = ", ".join(sorted({p for _, p in kinds}))
        of = f"class {strange[0].number} " if C else ""
        raise LogevalError(f"{label} has no parameter {of}{strange[0].parameter!r}; it has {names}")
    for what, values in (("scope", {r.scope for r in rows}), ("method", {r.method for r in rows})):
        if len(values) > 1:
            raise LogevalError(f"{label} has rows of {what} {' and '.join(sorted(values))}")
    listed = _spoken_of(rows, kinds, label) if listed is None else listed
    queries: list[Query | None] = [one.query for one in listed]
    if not queries or len(set(queries)) < len(queries):
        raise LogevalError(f"{label}: name its queries, each once; {len(queries)} are named")
    own = {one.query: one.items for one in listed}
    found: list[dict[str, Any]] = []
    for (number, parameter), kind in kinds.items():
        of_all = rows[0].scope == "pooled" and kind not in ("item", "class")
        wanted: list[Query | None] = [None] if of_all else queries
        mine = [row for row in rows if (row.number, row.parameter) == (number, parameter)]
        by_query = {row.query: row for row in mine}
        if kind == "item":  # of queries never seen
            same: Any = {"method": rows[0].method, "scope": rows[0].scope, "class": number}
            rest = Row(model=name, parameter=parameter, value=[], items=[], **same)
            if by_query.setdefault(None, rest) is rest:
                mine.append(rest)
            wanted = [*wanted, None]
        if len(by_query) < len(mine) or set(by_query) != set(wanted):
            raise LogevalError(
                f"{label} {parameter}: there must be one row for each of its queries, "
                f"{', '.join(map(str, wanted[:5]))}; there are {len(mine)}"
            )
        for query in wanted:
            row = by_query[query]
            if (row.items or None) != (own.get(query) or None if kind == "item" else None):
                raise LogevalError(f"{label} {parameter} of query {query}: not of its items")
            found.append({**row.lists(), "model": name})
    if len({len(each) for row in found for each in row.get("draws") or []}) > 1:
        raise LogevalError(f"{label}: draws must be equally many of every value; fit again")
    table = pa.Table.from_pylist(found, schema=MODELS)
    fitted = fitted_of(table, {name: _listing(listed)}, label)[name]
    if not isinstance(fitted, FittedClasses):
        return _with_unseen(fitted)
    wrong = np.abs(fitted.estimates[SHARE].value.sum(axis=1) - 1.0) > 1e-6
    if wrong.any():
        query = queries[int(wrong.argmax())]
        raise LogevalError(f"{label}: the shares of the classes of query {query} must add up to 1")
    return replace(fitted, parts=tuple(map(_with_unseen, fitted.parts)))


def _listing(listed: list[Listed]) -> Listing:
    items, base = ([np.array(x, dtype=np.int64) for x in lists] for lists in zip(
        *((one.items, one.base or []) for one in listed), strict=True))  # fmt: skip
    identified = [one.identified for one in listed]
    return Listing(
        [Query(one.query_id, one.region_id) for one in listed],
        np.array([one.positions for one in listed]),
        np.array([one.serps for one in listed], dtype=float),
        np.concatenate(items),
        np.cumsum([0, *map(len, items)]),
        base if any(map(len, base)) else None,
        None if None in identified else np.array(identified, dtype=float),
    )


def _with_unseen(fitted: FittedModel) -> FittedModel:
    """The model with the mean of its items in place of nan for those never seen."""
    items, query = {}, {}
    for name, each in fitted.unseen_items.items():
        value, rest = fitted.estimates[name].value, fitted.unseen_query[name]
        mean = float(value.mean()) if len(value) else 0.5
        items[name] = np.where(np.isnan(each), mean, each)
        query[name] = mean if np.isnan(rest) else rest
    return replace(fitted, unseen_items=items, unseen_query=query)
