"""How a query is named: ``9982@0`` is query 9982 in region 0, ``9982`` where there is none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import NamedTuple, TypeVar

from logeval.errors import LogevalError

T = TypeVar("T")
MOST = 2**63 - 1  # what SQL can count


class Query(NamedTuple):
    """A query: its id and, where the log has regions, its region."""

    query_id: int
    region_id: int | None = None

    def __str__(self) -> str:
        return f"{self.query_id}" if self.region_id is None else f"{self.query_id}@{self.region_id}"

    @classmethod
    def parse(cls, text: str) -> Query:
        """The query written as ``9982@0``, or ``9982`` where there is no region."""
        return cls.of(text)

    @classmethod
    def of(cls, query: GivenQuery) -> Query:
        """A query as users give it: itself, its name, its number, or (query_id, region_id)."""
        form = "9982, or 9982@0 with a region"
        try:
            if isinstance(query, tuple):  # only numbers may reach SQL
                form = "(query_id, region_id) with whole numbers"
                number, region = query if len(query) == 2 else (*query, None)
                return cls(index(number), None if region is None else index(region))
            name, _, place = str(query).partition("@")
            return cls(int(name), int(place) if place else None)
        except (TypeError, ValueError):
            raise LogevalError(f"{query!r} is not a query; write {form}") from None


GivenQuery = Query | str | int | tuple[int, int | None]
GivenQueries = GivenQuery | Iterable[GivenQuery] | None


def several(queries: GivenQuery | Iterable[GivenQuery]) -> list[GivenQuery]:
    """Queries as users give them, one or several, as a list; a text may be several, too."""
    one = isinstance(queries, str | tuple) or not isinstance(queries, Iterable)
    given: list[GivenQuery] = [queries] if one else list(queries)  # type: ignore
    return [query for query in given if not isinstance(query, str) or query.strip(", ")]


def given_queries(queries: GivenQueries) -> list[Query] | None:
    """Queries by their ids: one or several; None for all."""
    return None if queries is None else [Query.of(query) for query in several(queries)]


def among(query: GivenQuery, known: Sequence[T]) -> list[T]:
    """Those of the known queries, or of their names, that are meant; none if there is no such.

    Without a region all regions are meant.
    """
    name = str(Query(*query)) if isinstance(query, tuple) else str(query)
    return [k for k in known if name in (str(k), str(k).partition("@")[0])]


def sql_limit(top: int) -> str:
    """SQL for the first ``top`` rows; more than there can be are all of them."""
    if top < 0:
        raise LogevalError(f"{top}: there cannot be fewer than 0 rows")
    return f"LIMIT {min(int(top), MOST)}"


def sql_condition(queries: GivenQueries) -> str:
    """An SQL condition for one or more queries; a name without a region means all regions.

    Whatever was given, only whole numbers are in it.
    """
    parts = []
    for query, region in given_queries(queries) or ():
        both = f"query_id = {query}" + ("" if region is None else f" AND region_id = {region}")
        parts.append(f"({both})")
    return " OR ".join(parts) or "false"
