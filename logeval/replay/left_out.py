"""What an estimate leaves out, in words: queries that only the log, or only the target, has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

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
    log: Log,
    sources: Sequence[TargetSource],
    targets: Sequence[Target],
    logged: Logged,
    asked: ReplayEstimate,
) -> list[str]:
    """A sentence for each target that is not about the whole log, or has more than the log."""
    known, notes = logged.patterns.queries, []
    everything = asked.wanted is None and asked.top_queries is None
    queries, serps = _size(log) if everything else (logged.patterns.Q, logged.patterns.serps.sum())
    for source, target in zip(sources, targets, strict=True):
        used = target.mass().sum(axis=1) > 0
        n, mine = int(used.sum()), logged.patterns.serps[used].sum()
        if n < queries:
            notes.append(
                f"{source.name}: has lists for {n:,} of the {queries:,} queries of the log, which "
                f"are {_share(mine / serps)} of its searches; nothing is said about the others"
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
                    f"({_share(own.serps[lost].sum() / own.serps.sum())} of its searches) are not "
                    "in the rest of the log and are left out"
                )
    return notes


def _size(log: Log) -> tuple[int, int]:
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


def _share(x: float) -> str:
    return f"{x:.1%}" if x >= 0.001 else f"{x:.2g}" if np.isfinite(x) else "?"
