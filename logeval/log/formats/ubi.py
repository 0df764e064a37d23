"""ubi: User Behavior Insights 1.x of OpenSearch, Solr and Elasticsearch, as NDJSON, Parquet or CSV.

Files of queries (query_id, user_query, client_id, query_response_hit_ids in order, timestamp) and
of events (action_name, query_id, event_attributes.object.object_id, timestamp), or of both
together. A query_id is one search; which actions are clicks, and which say what was seen, is an
option.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from logeval.errors import LogevalError, printable
from logeval.log.columns.frame import Frame
from logeval.log.columns.opening import open_table
from logeval.log.columns.table_file import TableFile, one_array
from logeval.log.formats.format import Format, Job, Read, Reading
from logeval.log.layouts import column_names
from logeval.log.reading.source import Source
from logeval.log.rows.conversion import Numbering
from logeval.log.rows.ids import Ids
from logeval.log.rows.reader import spilled_pages
from logeval.log.rows.ubi_records import ACTION, COLUMNS, HITS, SEARCH, TIME, convert_records
from logeval.log.rows.values import time_unit


@dataclass(frozen=True, kw_only=True)
class Ubi(Format):
    """Queries and events."""

    together: bool = True
    actions: bool = True
    accounts: ClassVar[Mapping[str, str]] = {
        "queries": "queries with results (SERPs)",
        "pages_empty": "queries of which nothing was seen",
        "queries_repeated": "queries with a query_id that was there before",
        "queries_without_results": "queries without results",
        "queries_without_text": "queries without text",
        "clicks_apart": "clicks on a result",
        "clicks_orphan": "clicks on what was not shown, or of an unknown query",
        "views": "views of a result",
        "views_orphan": "views of what was not shown, or of an unknown query",
        "events_without_query": "clicks and views without a query_id",
        "events_without_object": "clicks and views without an object",
        "events_other": "other actions",
        "records_other": "neither queries nor events",
        "rejected": "rejected (rejects.tsv)",
    }

    def likeness(self, source: Source | Frame, columns: Mapping[str, str]) -> float:
        """By the names of fields that nobody else has."""
        names = column_names(source)
        return 0.9 if SEARCH in names and (HITS in names or ACTION in names) else 0.0

    def read(self, reading: Reading) -> Iterator[Job | Read]:
        """All files together."""
        tables = [open_table(source) for source in reading.sources]
        _check(tables)
        unused = {name for table in tables for name in table.names} - set(COLUMNS)
        clicks, views = ", ".join(reading.actions), ", ".join(reading.views) or "none"
        reading.say(
            f"queries and events; query = user_query, item = query_response_hit_ids, user = "
            f"client_id, clicks = {clicks}, views = {views}; not used: "
            f"{printable(sorted(unused)) or 'nothing'}"
        )
        numbering = Numbering(Ids(reading.folder, frozenset({"query", "item", "user"})))
        convert = partial(
            convert_records, actions=reading.actions, views=reading.views, units=_units(tables)
        )
        yield from spilled_pages(
            reading, tables, list(COLUMNS), convert, numbering, views=bool(reading.views)
        )
        numbering.ids.close()


def _check(tables: list[TableFile]) -> None:
    """Raise unless there are queries with hits, and events."""
    for name, what in ((HITS, "queries"), (ACTION, "events")):
        if not any(name in table.names or not table.complete for table in tables):
            raise LogevalError(
                f"{tables[0].name}: no file has {name}; give the {what} of UBI, too, beside what "
                f"has {printable(tables[0].names[:20])}"
            )


def _units(tables: list[TableFile]) -> list[str | None]:
    """The unit of the times of each file; where some are no clock, none is."""
    samples = [table.sample() for table in tables]
    units = [time_unit(one_array(s[TIME])) if TIME in s.column_names else None for s in samples]
    return ["plain"] * len(units) if "plain" in units else units


FORMAT = Ubi(name="ubi")
