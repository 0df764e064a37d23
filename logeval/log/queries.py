"""How a query is named: ``9982@0`` is query 9982 in region 0, ``9982`` where there is none."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from logeval.errors import LogevalError

QueryKey = tuple[int, int | None]  # (query_id, region_id)
T = TypeVar("T")
MOST = 2**63 - 1  # what SQL can count


class Query(NamedTuple):
    """A query: its id and, where the log has regions, its region."""

    query_id: int
    region_id: int | None = None

    def __str__(self) -> str:
        return query_name(self.query_id, self.region_id)

    @classmethod
    def parse(cls, text: str) -> Query:
        """The query written as ``9982@0``, or ``9982`` where there is no region."""
        return cls(*query_key(text))

    @classmethod
    def of(cls, query: GivenQuery) -> Query:
        """A query as users give it: itself, its name, its number, or (query_id, region_id)."""
        return cls(*query_key(query))


GivenQuery = Query | str | int | QueryKey
GivenQueries = GivenQuery | Iterable[GivenQuery] | None


def given_queries(queries: GivenQueries) -> list[Query] | None:
    """Queries as users give them: one or several; None for all."""
    if queries is None:
        return None
    if isinstance(queries, str | int | np.integer | tuple):
        return [Query.of(queries)]  # type: ignore[arg-type]
    return [Query.of(q) for q in queries]


def among(query: GivenQuery, known: Sequence[T]) -> list[T]:
    """Those of the known queries, or of their names, that are meant; none if there is no such.

    Without a region all regions are meant.
    """
    name = query_name(*query) if isinstance(query, tuple) else str(query)
    return [k for k in known if name in (str(k), str(k).partition("@")[0])]


def query_name(query_id: int, region_id: int | None) -> str:
    """``9982@0``, or ``9982`` without a region."""
    return f"{query_id}" if region_id is None else f"{query_id}@{region_id}"


def query_key(name: str | int | QueryKey) -> QueryKey:
    """The (query_id, region_id) that a name stands for."""
    if isinstance(name, tuple):
        return _numbers(name)
    query, _, region = str(name).partition("@")
    try:
        return int(query), int(region) if region else None
    except ValueError:
        raise LogevalError(
            f"{name!r} is not a query; write 9982, or 9982@0 with a region"
        ) from None


def _numbers(given: tuple[Any, ...]) -> QueryKey:
    """(query_id, region_id) from Python; only numbers may reach SQL."""
    try:
        query, region = given if len(given) == 2 else (*given, None)
        return operator.index(query), None if region is None else operator.index(region)
    except (TypeError, ValueError):
        raise LogevalError(
            f"{given!r} is not a query; write (query_id, region_id) with whole numbers"
        ) from None


def sql_limit(top: int) -> str:
    """SQL for the first ``top`` rows; more than there can be are all of them."""
    return f"LIMIT {min(int(top), MOST)}"


def sql_condition(names: str | int | QueryKey | Iterable[str | int | QueryKey]) -> str:
    """An SQL condition for one or more queries; a name without a region means all regions.

    Whatever was given, only whole numbers are in it.
    """
    if isinstance(names, str | int | tuple):
        names = [names]
    parts = []
    for query, region in map(query_key, names):
        both = f"query_id = {query}" + ("" if region is None else f" AND region_id = {region}")
        parts.append(f"({both})")
    return " OR ".join(parts) or "false"
