"""How a query is named: ``9982@0`` is query 9982 in region 0, ``9982`` where there is none."""

from __future__ import annotations

from collections.abc import Iterable

from logeval.errors import LogevalError

QueryKey = tuple[int, int | None]  # (query_id, region_id)


def query_name(query_id: int, region_id: int | None) -> str:
    """``9982@0``, or ``9982`` without a region."""
    return f"{query_id}" if region_id is None else f"{query_id}@{region_id}"


def query_key(name: str | int | QueryKey) -> QueryKey:
    """The (query_id, region_id) that a name stands for."""
    if isinstance(name, tuple):
        return name
    query, _, region = str(name).partition("@")
    try:
        return int(query), int(region) if region else None
    except ValueError:
        raise LogevalError(f"{name!r} is not a query; write 9982, or 9982@0 with a region") from None


def sql_condition(names: Iterable[str | int | QueryKey]) -> str:
    """An SQL condition for these queries; a name without a region means all regions."""
    parts = []
    for query, region in map(query_key, names):
        both = f"query_id = {query}" + ("" if region is None else f" AND region_id = {region}")
        parts.append(f"({both})")
    return " OR ".join(parts) or "false"
