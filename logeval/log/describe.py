"""What people look at first: totals, CTR by rank, clicks per SERP, the frequent queries.

CTR at rank k is the share of the SERPs with at least k items whose k-th item was clicked.
The entropy of a query's list is -sum p log2 p over its distinct lists. Test SERPs count in the
totals only: their clicks are withheld, so rates and frequencies leave them out. A table of counts
knows impressions, and no pages: its CTR is the share of the impressions at a rank with a click.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd

from logeval.facts import Fact
from logeval.log.names import Names
from logeval.log.queries import sql_condition
from logeval.storage.results import Shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from logeval.facts import Fact
from logeval.log.log import Log

# name -> SQL over the view serps; one row, one column
TOTALS = {
    "sessions": "SELECT count(DISTINCT session_id) FROM serps",
    "serps": "SELECT count(*) FROM serps",
    "test_serps": "SELECT count(*) FROM serps WHERE test",
    "queries": "SELECT count(*) FROM (SELECT DISTINCT query_id, region_id FROM serps)",
    "items": "SELECT count(*) FROM (SELECT DISTINCT unnest(items) FROM serps)",
    # null for a log that does not have them
    "users": "SELECT nullif(count(DISTINCT user_id), 0) FROM serps",
    "days": "SELECT nullif(count(DISTINCT day), 0) FROM serps",
    "clicked_results": "SELECT coalesce(sum(len(list_filter(clicks, lambda c: c > 0))), 0) "
    "FROM serps",
    "clicks": "SELECT coalesce(sum(list_sum(clicks)), 0) FROM serps",
}

CTR_BY_RANK = """
    SELECT rank, count(*) AS serps, avg((clicks > 0)::DOUBLE) AS ctr
    FROM (SELECT generate_subscripts(clicks, 1) + coalesce(first, 1) - 1 AS rank,
                 unnest(clicks) AS clicks
          FROM serps WHERE NOT test)
    GROUP BY rank ORDER BY rank"""

CLICKS_PER_SERP = """
    SELECT len(list_filter(clicks, lambda c: c > 0)) AS clicked, count(*) AS serps,
           count(*) / sum(count(*)) OVER () AS share
    FROM serps WHERE NOT test GROUP BY clicked ORDER BY clicked"""

FREQUENCY = """
    SELECT serps, count(*) AS queries
    FROM (SELECT count(*) AS serps FROM serps WHERE NOT test GROUP BY query_id, region_id)
    GROUP BY serps ORDER BY serps DESC"""

# the terms of the entropy are added in one order, or its last digit would differ between runs
LISTS_OF = """
    WITH lists AS (
        SELECT query_id, region_id, items, count(*) AS n,
               sum(len(list_filter(clicks, lambda c: c > 0))) AS clicks
        FROM serps WHERE NOT test AND ({condition}) GROUP BY ALL),
    shown AS (SELECT DISTINCT query_id, region_id, unnest(items) AS item FROM lists),
    sizes AS (SELECT query_id, region_id, count(*) AS L FROM shown GROUP BY ALL)
    SELECT concat_ws('@', l.query_id, l.region_id) AS query, sum(n)::BIGINT AS serps,
           any_value(L) AS items, count(*) AS lists, sum(clicks) / sum(n) AS clicks_per_serp,
           log2(sum(n)) - sum(n * log2(n) ORDER BY n) / sum(n) AS list_entropy
    FROM lists AS l JOIN sizes AS s
        ON l.query_id = s.query_id AND l.region_id IS NOT DISTINCT FROM s.region_id
    GROUP BY l.query_id, l.region_id ORDER BY serps DESC, l.query_id, l.region_id"""

# how far down clicked results stand, from 0 to 1; in the middle where order means nothing
DEPTH = """
    SELECT avg((rank - .5) / n), stddev_samp((rank - .5) / n) / sqrt(count(*))
    FROM (SELECT generate_subscripts(clicks, 1) AS rank, unnest(clicks) AS clicks, len(clicks) AS n
          FROM serps WHERE NOT test AND len(clicks) > 1)
    WHERE clicks > 0"""
FLAT = 0.02  # nearer to the middle than this, with its interval, is no order
SPARSE = 2.0  # SERPs of a query on average

COUNTED = {
    "queries": "SELECT count(*) FROM (SELECT DISTINCT query_id, region_id FROM counts)",
    "items": "SELECT count(DISTINCT item_id) FROM counts",
    "positions": "SELECT coalesce(max(position), 0) FROM counts",
    "impressions": "SELECT coalesce(sum(impressions), 0) FROM counts",
    "clicks": "SELECT coalesce(sum(clicks), 0) FROM counts",
}

COUNTED_BY_RANK = """
    SELECT position AS rank, sum(impressions)::BIGINT AS impressions,
           sum(clicks) / sum(impressions) AS ctr
    FROM counts GROUP BY rank HAVING sum(impressions) > 0 ORDER BY rank"""

COUNTED_FREQUENCY = """
    SELECT impressions, count(*) AS queries
    FROM (SELECT sum(impressions)::BIGINT AS impressions FROM counts GROUP BY query_id, region_id)
    WHERE impressions > 0 GROUP BY impressions ORDER BY impressions DESC"""

# ``moved``: the items that were shown at several positions, which alone compare these
COUNTED_QUERIES = """
    WITH items AS (
        SELECT query_id, region_id, item_id, sum(impressions) AS n, sum(clicks) AS clicks,
               max(position) AS last, count(*) FILTER (impressions > 0) > 1 AS moved
        FROM counts WHERE {condition} GROUP BY query_id, region_id, item_id)
    SELECT concat_ws('@', query_id, region_id) AS query, sum(n)::BIGINT AS impressions,
           count(*) AS items, sum(moved)::BIGINT AS moved, max(last) AS positions,
           sum(clicks) / nullif(sum(n), 0) AS ctr
    FROM items GROUP BY query_id, region_id
    ORDER BY impressions DESC, query_id, region_id"""


@dataclass(frozen=True)
class Description(Shown):
    """The description of a log; columns named serps are impressions where it holds counts."""

    totals: dict[str, int | None]  # None: the log does not say
    ctr_by_rank: pd.DataFrame  # rank, serps, ctr
    clicks_per_serp: pd.DataFrame  # clicked, serps, share; no rows for counts
    # query, serps, items, lists, clicks_per_serp, list_entropy; of counts: query, impressions,
    # items, moved (those at several positions), positions, ctr
    top_queries: pd.DataFrame
    frequency: pd.DataFrame  # serps, queries: how many queries have this many SERPs
    names: Names = field(default_factory=Names)  # of the top queries
    ordered: bool = True  # whether clicks say that the order of a list means something
    sparse: bool = False  # whether most queries were asked too rarely to learn from

    @property
    def facts(self) -> list[Fact]:
        """What the log is not good for."""
        found = [] if self.ordered else [Fact("order-lost", level="caution")]
        if self.sparse:
            of = {name: self.totals[name] for name in ("queries", "serps")}
            found.append(Fact("sparse-log", level="caution", more=of))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and strings, fit for JSON, queries by their names."""
        shown = replace(self, top_queries=self.names.shown(self.top_queries))
        found = {f.name: getattr(shown, f.name) for f in fields(self) if f.name != "names"}
        found["facts"] = [fact.record() for fact in self.facts]
        return {
            name: value.to_dict(orient="records") if isinstance(value, pd.DataFrame) else value
            for name, value in found.items()
        }

    def plot(self, axes: Sequence[Axes] | None = None) -> Sequence[Axes]:
        """CTR by rank, and SERPs of the queries, most frequent first."""
        from logeval.reports.figures.models import plot_log

        return plot_log(self, axes)


def describe(log: Log, top: int = 20) -> Description:
    """Describe an ingested log."""
    queries = log.top_queries(top)
    with log.connect() as connection:
        totals = {name: _number(connection, sql) for name, sql in TOTALS.items()}
        return Description(
            totals=totals,
            ctr_by_rank=connection.execute(CTR_BY_RANK).df(),
            clicks_per_serp=connection.execute(CLICKS_PER_SERP).df(),
            top_queries=_lists_of(connection, queries),
            frequency=connection.execute(FREQUENCY).df(),
            names=log.names.of_queries(queries["query"]),
            ordered=_is_ordered(connection),
            sparse=(totals["serps"] or 0) < SPARSE * (totals["queries"] or 0),
        )


def _is_ordered(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether clicks are not as deep as chance would have it, as far as they can tell."""
    ((depth, error),) = connection.execute(DEPTH).fetchall()
    return depth is None or error is None or abs(depth - 0.5) + 2 * error > FLAT


def describe_counts(log: Log, top: int = 20) -> Description:
    """Describe a table of counts."""
    queries = log.top_queries(top)["query"]
    with log.connect(holds="counts") as connection:
        found = COUNTED_QUERIES.format(condition=sql_condition(queries))
        return Description(
            totals={name: _number(connection, sql) for name, sql in COUNTED.items()},
            ctr_by_rank=connection.execute(COUNTED_BY_RANK).df(),
            clicks_per_serp=pd.DataFrame(columns=["clicked", "serps", "share"]),
            top_queries=connection.execute(found).df(),
            frequency=connection.execute(COUNTED_FREQUENCY).df(),
            names=log.names.of_queries(queries),
        )


def _number(connection: duckdb.DuckDBPyConnection, sql: str) -> int | None:
    row = connection.execute(sql).fetchone()
    return None if row is None or row[0] is None else int(row[0])


def _lists_of(connection: duckdb.DuckDBPyConnection, queries: pd.DataFrame) -> pd.DataFrame:
    condition = sql_condition(queries["query"])
    frame = connection.execute(LISTS_OF.format(condition=condition)).df()
    return queries[["query"]].merge(frame, on="query")
