"""Records of searches and of what happened then, in any order -> SERPs: UBI and Metarank.

A list is made of what was shown, by these rules, each of which is counted:

- An impression places its item at its ordinal. Ordinals begin at 0 or 1: what more of them agree
  with the hits says so, else whether the page has a 0. A page that begins later keeps its rank.
- Of several items at one place that counts which was shown last before the first click there, or
  last of all where there was none.
- Hits fill the places that no impression has, as far down as an impression or a click says that the
  page was seen; where there are no impressions, they are the list.
- A clicked item that is not in the list stands where its click says, if nothing else does.
- The text of a search is that of its first query record, else of its first event that has one,
  else its query_id: it is a query of its own.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from logeval.errors import LogevalError, printable
from logeval.log.formats.format import Format, Job, Read, Reading
from logeval.log.reading.source import Source
from logeval.log.tables.files import Batch, TableFile
from logeval.log.tables.frame import Frame, open_table
from logeval.log.tables.pages import COUNTS, PLACES, made_pages
from logeval.log.tables.roles import Layout, column_names
from logeval.log.tables.staging import READING, Staging, first_reason, staged
from logeval.log.tables.values import BAD, DAY, Sample, check_exact, literal, text_of

IMPRESSION = "impression"
ACCOUNTS = {
    "query_records": "queries of a search with a list",
    "queries_without_results": "queries of a search without a list",
    "views": "impressions in a list",
    "views_doubled": "impressions at a place where another item counts",
    "views_orphan": "impressions without a place, or of a search without a list",
    "clicks_apart": "clicks on a result",
    "clicks_orphan": "clicks on what was not shown",
    "conversions": "conversions",
    "events_without_query": "clicks, impressions and conversions without a query_id",
    "events_without_object": "clicks, impressions and conversions without an object",
    "events_other": "other actions",
    "records_other": "neither queries nor events, as the lines of a bulk request",
    "other_applications": "of other applications",
    "rejected": "rejected (rejects.tsv)",
}
SEARCH, QUERY, HITS, ACTION = "query_id", "user_query", "query_response_hit_ids", "action_name"
OBJECT, ORDINAL = "event_attributes.object.object_id", "event_attributes.position.ordinal"
UBI_COLUMNS = (
    SEARCH, QUERY, "client_id", HITS, "timestamp", ACTION, OBJECT, ORDINAL, "application",
    "message_type", "message",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Records(Format):
    """Queries and events; ``fields`` says in SQL, of its columns, what a record is."""

    wanted: tuple[str, ...]
    marks: tuple[tuple[str, ...], ...]  # columns by which it is known: one of each
    needed: str  # that of events
    fields: Mapping[str, str]  # {0} is the first column as text
    texts: str = "user_query"
    together: bool = True
    actions: bool = True

    def likeness(self, source: Source | Frame, columns: Mapping[str, str]) -> float:
        """By the names of fields that nobody else has."""
        names = column_names(source)
        return 0.9 if all(set(some) & names for some in self.marks) else 0.0

    def read(self, reading: Reading) -> Iterator[Job | Read]:
        """All files together."""
        tables = [open_table(source) for source in reading.sources]
        self._check(tables)
        units = _units(tables)
        clock = "plain" not in units
        unused = {name for table in tables for name in table.names} - set(self.wanted)
        reading.say(
            f"queries and events; query = {self.texts}, clicks = {', '.join(reading.actions)}, "
            f"shown = {', '.join(reading.views) or IMPRESSION}; not used: "
            f"{printable(sorted(unused)[:30]) or 'nothing'}"
        )
        with staged(reading) as staging:
            yield Read(Counter(dict.fromkeys(COUNTS, 0)))
            for source in reading.sources:
                source.advance = lambda n: reading.advance(n * READING)
            select = partial(self._select, reading, clock)
            yield from staging.read(tables, self.wanted, select, check=_check_ids)
            yield Read(_lists(staging, reading, clock))
            columns: dict[str, tuple[str, ...]] = {"time": ("timestamp",)} if clock else {}
            layout = Layout("results", columns, unit=None if clock else "plain")
            yield from made_pages(staging, layout, {"query", "item", "user"})
        shutil.rmtree(staging.folder)

    def _check(self, tables: Sequence[TableFile]) -> None:
        """Raise unless there are events."""
        if not any(self.needed in table.names or not table.complete for table in tables):
            raise LogevalError(
                f"{tables[0].name}: no file has {self.needed}; give the events, too, beside what "
                f"has {printable(tables[0].names[:20])}"
            )

    def _select(
        self, reading: Reading, clock: bool, kinds: Mapping[str, pa.DataType], file: int
    ) -> str:
        raw = [
            text_of(f"c{i}", kinds[name])
            if not hasattr(kinds[name], "value_type")
            else f"to_json({text_of(f'c{i}', kinds[name])})::VARCHAR"
            for i, name in enumerate(self.wanted)
        ]
        values = {name: sql.format(*raw) for name, sql in self.fields.items()}
        for name in ("search", "query", "user", "action", "item", "application"):
            values[name] = f"nullif({values[name]}, '')"
        time = values.pop("time")
        values["time"] = f"{'instant' if clock else 'number'}({time})"
        values["ordinal"] = f"number({values['ordinal']})"
        values["value"] = time
        kept = ["action NOT IN ('')", "query IS NOT NULL OR hits IS NOT NULL"]
        asked = reading.applications
        other = (
            f"coalesce(application, '') NOT IN ({', '.join(map(literal, asked))})"
            if asked
            else "false"
        )
        role = f"""CASE WHEN {other} THEN 'other_applications'
            WHEN {_among("action", reading.actions)} THEN 'click'
            WHEN {_among("action", reading.views or (IMPRESSION,))} THEN 'view'
            WHEN {_among("action", reading.rewards)} THEN 'conversion'
            WHEN action IS NOT NULL THEN 'events_other'
            WHEN {kept[1]} THEN 'query' ELSE 'records_other' END"""
        used = "role IN ('click', 'view', 'conversion', 'query')"
        reasons = [
            (f"{used} AND time = {BAD}", "not a time", "value"),
            ("role = 'query' AND search IS NULL", "query_id is empty", "NULL"),
            ("role = 'query' AND len(list_filter(hits, lambda h: coalesce(h, '') = '')) > 0",
             "a hit without an id", "NULL"),
        ]  # fmt: skip
        listed = ", ".join(f"{sql} AS {name}" for name, sql in values.items())
        names = [name for name in values if name != "value"]
        event = "role IN ('click', 'view', 'conversion')"
        return f"""
            SELECT line, {", ".join(names)}, CASE
                WHEN {event} AND search IS NULL THEN 'events_without_query'
                WHEN {event} AND item IS NULL THEN 'events_without_object' ELSE role END AS role,
                {first_reason(reasons)}
            FROM (SELECT *, {role} AS role FROM (SELECT line, {listed} FROM batch))"""


def _among(column: str, names: Sequence[str]) -> str:
    listed = ", ".join(map(literal, names))
    return f"{column} IN ({listed})" if listed else "false"


def _check_ids(batch: Batch) -> None:
    for name, array in batch.columns.items():
        if name not in ("timestamp", ORDINAL):
            check_exact(name, array)


def _units(tables: Sequence[TableFile]) -> list[str]:
    """The unit of the times of each file; where some are no clock, none is."""
    found = []
    for table in tables:
        if "timestamp" in table.names:
            typical = Sample(table.sample()).typical("timestamp", False)
            found.append("plain" if typical is not None and typical < 10**9 else "clock")
    return found


def _lists(staging: Staging, reading: Reading, clock: bool) -> Counter[str]:
    """Records -> rows of results and clicks, and what was counted."""
    run = staging.db.execute
    run("ALTER TABLE rows RENAME TO records")
    run(
        """CREATE TABLE searches AS
        SELECT search, min(n) AS n, arg_min(hits, n) FILTER (len(hits) > 0) AS hits,
            coalesce(arg_min(query, n) FILTER (role = 'query' AND query IS NOT NULL),
                arg_min(query, n) FILTER (query IS NOT NULL)) AS query,
            coalesce(arg_min(user, n) FILTER (role = 'query' AND user IS NOT NULL),
                arg_min(user, n) FILTER (user IS NOT NULL)) AS user,
            coalesce(arg_min(time, n) FILTER (role = 'query' AND time IS NOT NULL),
                min(time)) AS time,
            min(ordinal) FILTER (role = 'view') AS lowest
        FROM records WHERE search IS NOT NULL AND role <> 'other_applications'
        GROUP BY search"""
    )
    # whether ordinals begin at 0 or 1, by page
    run(
        """CREATE TABLE bases AS
        SELECT s.search, CASE
                WHEN count(*) FILTER (s.hits[ordinal] = r.item)
                    > count(*) FILTER (s.hits[ordinal + 1] = r.item) THEN 1
                WHEN count(*) FILTER (s.hits[ordinal + 1] = r.item)
                    > count(*) FILTER (s.hits[ordinal] = r.item) THEN 0
                WHEN any_value(s.lowest) = 0 THEN 0 ELSE 1 END AS base
        FROM searches s JOIN records r ON r.search = s.search
        WHERE role = 'view' AND ordinal >= 0 GROUP BY s.search"""
    )
    run(
        f"""CREATE TABLE seen AS
        SELECT r.search, r.n, r.item, r.role, r.time, CASE WHEN ordinal + 1 - base > 0
            THEN ordinal + 1 - base END AS place
        FROM records r JOIN bases b ON b.search = r.search
        WHERE role IN ('view', 'click') AND ordinal >= 0 AND ordinal < {PLACES}"""
    )
    # of several items at one place, that shown last before the first click there
    run(
        """CREATE TABLE placed AS
        WITH clicked AS (SELECT search, place, arg_min(n, (coalesce(time, 0), n)) AS n,
                min((coalesce(time, 0), n)) AS moment
            FROM seen WHERE role = 'click' GROUP BY search, place),
        shown AS (SELECT s.*, (coalesce(s.time, 0), s.n) AS moment, c.moment AS until
            FROM seen s LEFT JOIN clicked c ON c.search = s.search AND c.place = s.place
            WHERE role = 'view' AND s.place IS NOT NULL)
        SELECT search, place, coalesce(
            arg_max(item, moment) FILTER (until IS NULL OR moment <= until),
            arg_min(item, moment)) AS item
        FROM shown GROUP BY search, place"""
    )
    # hits where nothing else is, as far as was seen
    run(
        """CREATE TABLE hit AS SELECT search, unnest(hits) AS item,
            unnest(range(1, len(hits) + 1)) AS place
        FROM searches WHERE len(hits) > 0"""
    )
    run(
        """CREATE TABLE depth AS
        SELECT search, max(place) AS last FROM (
            SELECT search, place FROM placed
            UNION ALL SELECT h.search, h.place FROM hit h JOIN records r
                ON r.search = h.search AND r.item = h.item WHERE role IN ('view', 'click'))
        GROUP BY search HAVING search IN
            (SELECT search FROM records WHERE role = 'view')"""
    )
    run(
        """INSERT INTO placed
        SELECT h.search, h.place, h.item FROM hit h LEFT JOIN depth d ON d.search = h.search
        ANTI JOIN placed p ON p.search = h.search AND (p.place = h.place OR p.item = h.item)
        WHERE d.last IS NULL OR h.place <= d.last"""
    )
    run(
        """INSERT INTO placed
        SELECT search, place, arg_min(item, n) FROM seen c
        WHERE role = 'click' AND place IS NOT NULL AND search IN (SELECT search FROM placed)
            AND NOT EXISTS (SELECT 1 FROM placed p WHERE p.search = c.search
                AND (p.place = c.place OR p.item = c.item))
        GROUP BY search, place"""
    )
    nameless = "query IS NULL AND search IN (SELECT search FROM placed)"
    ((unnamed,),) = staging.sql(f"SELECT count(*) FROM searches WHERE {nameless}")
    run(f"UPDATE searches SET query = search WHERE {nameless}")
    reward = (
        """, CASE WHEN place = min(place) OVER (PARTITION BY p.search, p.item) THEN
            (SELECT count(*) FROM records c WHERE c.role = 'conversion' AND c.search = p.search
                AND c.item = p.item) ELSE 0 END::DOUBLE AS reward"""
        if reading.rewards
        else ""
    )
    day = f", time // {DAY} AS day" if clock else ""
    run(
        f"""CREATE TABLE rows AS
        SELECT s.n * {PLACES} + place AS n, p.search, query, user, p.item, place AS position,
            0::BIGINT AS clicks, time{day}, NULL::BIGINT AS click_time{reward}
        FROM placed p JOIN searches s ON s.search = p.search"""
    )
    more = f"{', NULL' if day else ''}, time{', NULL' if reward else ''}"
    run(
        f"""INSERT INTO rows SELECT n * {PLACES}, search, NULL, NULL, item, NULL, 1, NULL{more}
        FROM records WHERE role = 'click'"""
    )
    deeper = "FROM hit JOIN depth USING (search) WHERE place > last"
    ((unseen,),) = staging.sql(f"SELECT count(*) {deeper}")
    return _counted(staging) + Counter(searches_without_text=unnamed, rows_unseen=unseen)


def _counted(staging: Staging) -> Counter[str]:
    """How many records became what; clicks are counted where they are matched."""
    counts = Counter(
        {
            role: n
            for role, n in staging.sql("SELECT role, count(*) FROM records GROUP BY role")
            if role not in ("click", "view", "query", "conversion")
        }
    )
    counts["conversions"] = staging.sql("SELECT count(*) FROM records WHERE role = 'conversion'")[
        0
    ][0]
    views = """SELECT coalesce(sum(n) FILTER (ok), 0),
            coalesce(sum(n) FILTER (NOT ok AND listed), 0),
            coalesce(sum(n) FILTER (NOT ok AND NOT listed), 0)
        FROM (SELECT search IN (SELECT search FROM placed) AND coalesce(place, 0) > 0 AS listed,
            (search, item) IN (SELECT (search, item) FROM placed) AS ok, count(*) AS n
        FROM (SELECT r.search, r.item, ordinal + 1 - base AS place FROM records r
            LEFT JOIN bases b ON b.search = r.search WHERE role = 'view') GROUP BY ALL)"""
    ((shown, doubled, orphans),) = staging.sql(views)
    counts.update(views=int(shown), views_doubled=int(doubled), views_orphan=int(orphans))
    queries = """SELECT count(*) FILTER (listed), count(*) FILTER (NOT listed)
        FROM (SELECT search IN (SELECT search FROM placed) AS listed
            FROM records WHERE role = 'query')"""
    ((listed, empty),) = staging.sql(queries)
    counts.update(query_records=listed, queries_without_results=empty)
    return counts


# User Behavior Insights 1.x of OpenSearch, Solr and Elasticsearch: files of queries, and of events.
UBI = Records(
    name="ubi",
    accounts=ACCOUNTS,
    wanted=UBI_COLUMNS,
    marks=((SEARCH,), (HITS, ACTION, "query_attributes", "query_response_id")),
    needed=ACTION,
    fields={
        "search": "{0}",
        "query": "coalesce(nullif({1}, ''), CASE WHEN {9} = 'QUERY' THEN {10} END)",
        "user": "{2}", "hits": "whole_list({3}, '\\s*,\\s*|\\s+')",
        "time": "{4}", "action": "{5}", "item": "{6}", "ordinal": "{7}", "application": "{8}",
    },
)  # fmt: skip
# Metarank: rankings, and interactions with their items.
METARANK = Records(
    name="metarank",
    accounts=ACCOUNTS,
    wanted=("event", "id", "ranking", "user", "items", "timestamp", "type", "item", "fields"),
    marks=(("event",), ("id",), ("timestamp",), ("ranking", "items")),
    needed="ranking",
    texts="the field query",
    fields={
        "search": "CASE {0} WHEN 'ranking' THEN {1} WHEN 'interaction' THEN {2} END",
        "query": "CASE WHEN {0} = 'ranking' THEN coalesce(list_filter(from_json(nullif({8}, ''), "
        "'[\"JSON\"]'), lambda f: f->>'name' = 'query')[1]->>'value', 'all') END",
        "user": "{3}",
        "hits": "CASE WHEN {0} = 'ranking' THEN json_extract_string({4}, '$[*].id') END",
        "time": "{5}",
        "action": "CASE WHEN {0} = 'interaction' THEN {6} END",
        "item": "{7}",
        "ordinal": "''",
        "application": "''",
    },
)
