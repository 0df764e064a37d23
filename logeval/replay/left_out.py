"""What an estimate leaves out, in words: queries that only the log, or only the target, has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from logeval.clicks.support.selection import selected_by_clicks
from logeval.errors import LogevalError
from logeval.log.log import Log
from logeval.log.queries import Query, sql_condition
from logeval.replay.logged import Logged
from logeval.replay.targets.read import TargetSource, numbered_queries
from logeval.replay.targets.target import Target

if TYPE_CHECKING:
    from logeval.replay.estimate import ReplayEstimate

NAMED = 5  # queries, in a sentence


def known_queries(log: Log, given: Iterable[Query]) -> list[Query]:
    """Those of the queries that the log has; an error if it has none."""
    asked = list(dict.fromkeys(given))
    with log.connect() as db:
        rows = db.execute(
            "SELECT DISTINCT query_id, region_id FROM serps "
            f"WHERE NOT test AND ({sql_condition(asked)}) ORDER BY ALL"
        ).fetchall()
    if not rows:
        raise LogevalError(
            f"{log.path}: the log has no SERPs of the queries of the target ({_few(asked)}); is it "
            "of another log?"
        )
    return [Query(*row) for row in rows]


def left_out(
    sources: Sequence[TargetSource],
    targets: Sequence[Target],
    logged: Logged,
    asked: ReplayEstimate,
) -> list[str]:
    """A sentence for each target that has queries without lists, or that the log does not have."""
    known, notes = logged.patterns.queries, []
    if (selected := selected_by_clicks(asked.opened)) is not None:
        notes.append(selected)
    everything = asked.wanted is None and asked.top_queries is None
    for source, target in zip(sources, targets, strict=True):
        n, K = int((target.mass().sum(axis=1) > 0).sum()), target.K
        if n < len(known) and source.table is None and source.patterns is None:
            notes.append(
                f"{source.name}: {len(known) - n:,} of {len(known):,} queries have fewer than {K} "
                "items in the log and are left out"
            )
        if source.table is not None and everything:
            numbers = numbered_queries(source.table["query"], known)
            absent = [query for query, places in numbers.items() if not places]
            if absent:
                notes.append(
                    f"{source.name}: {len(absent):,} of its {len(numbers):,} queries are not in "
                    f"the log and are left out: {_few(absent)}"
                )
        if source.patterns is not None and everything:
            own = source.patterns
            lost = [q for q, query in enumerate(own.queries) if query not in set(known)]
            if lost:
                notes.append(
                    f"{source.name}: {len(lost):,} of its {own.Q:,} queries "
                    f"({own.serps[lost].sum() / own.serps.sum():.1%} of its searches) are not "
                    "in the rest of the log and are left out"
                )
    return notes


def size_of(log: Log) -> tuple[int, int]:
    """How many queries and SERPs a log has."""
    with log.connect() as db:
        row = db.execute(
            "SELECT count(*), sum(n) FROM (SELECT count(*) AS n FROM serps WHERE NOT test "
            "GROUP BY query_id, region_id)"
        ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1] or 0)


def _few(queries: Sequence[Query]) -> str:
    more = f" and {len(queries) - NAMED:,} more" if len(queries) > NAMED else ""
    return ", ".join(map(str, queries[:NAMED])) + more
