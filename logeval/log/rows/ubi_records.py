"""A batch of UBI records, queries and events in any mixture -> rows.

A query is a page of its hits. An event whose action counts as a click is a click on its object that
does not say where: positions in events are counted from 0 by some clients and from 1 by others,
while the hits are in order. A view likewise says that its object was seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from logeval.log.columns.table_file import Batch
from logeval.log.rows.conversion import APART, NONE, SEEN, Converted, Rejects, Rows
from logeval.log.rows.ids import given_ids, sums_of
from logeval.log.rows.values import BAD, DAY, GOOD, as_lists, as_texts, as_times, check_exact
from logeval.running.arrays import Bools

SEARCH, QUERY, USER, HITS = "query_id", "user_query", "client_id", "query_response_hit_ids"
TIME, ACTION, OBJECT = "timestamp", "action_name", "event_attributes.object.object_id"
COLUMNS = (SEARCH, QUERY, USER, HITS, TIME, ACTION, OBJECT)


def convert_records(
    batch: Batch,
    file: int,
    actions: Sequence[str],
    views: Sequence[str],
    units: Sequence[str | None],
) -> Converted:
    """The queries that have results, and the clicks and views of a batch."""
    rejects, unit = Rejects(batch), units[file]
    n = len(rejects.good)
    columns = {name: batch.columns.get(name, pa.nulls(n, pa.string())) for name in COLUMNS}
    for name in (SEARCH, QUERY, USER, OBJECT, HITS):
        check_exact(name, columns[name])
    texts = {name: as_texts(columns[name]) for name in (SEARCH, QUERY, USER, ACTION, OBJECT)}
    there = {name: _there(array) for name, array in texts.items()}
    hits = as_lists(columns[HITS], between=r"\s*,\s*|\s+")
    lengths = hits.value_lengths().fill_null(0).to_numpy()
    event = there[ACTION]
    query = ~event & (there[QUERY] | hits.is_valid().to_numpy(False))
    click, view = (event & _among(texts[ACTION], names) for names in (actions, views))
    times = as_times(columns[TIME], unit)
    rejects.add((query | click | view) & (times.states == BAD), "not a time", columns[TIME])
    rejects.add(query & ~there[SEARCH], "query_id is empty")
    inside = rejects.inside(np.repeat(np.arange(n), lengths))
    inside.add(~_there(as_texts(hits.flatten())), "a hit without an id")
    known = there[SEARCH] & there[OBJECT]
    used = rejects.good & ((query & there[QUERY] & (lengths > 0)) | ((click | view) & known))
    left = rejects.good & ~used  # why these are not used, each for one reason
    counts = Counter(rows=batch.rows, rejected=len(rejects.found))
    for name, reason in {
        "queries_without_results": query & (lengths == 0),
        "queries_without_text": query,
        "records_other": ~event,
        "events_other": ~(click | view),
        "events_without_query": ~there[SEARCH],
        "events_without_object": left,
    }.items():
        counts[name] = int((left & reason).sum())
        left &= ~reason
    kept = np.flatnonzero(used)
    is_query = query[kept]
    sizes = np.where(is_query, lengths[kept], 1)
    first = np.append(0, np.cumsum(sizes))
    of_query = np.repeat(is_query, sizes)
    position = np.arange(first[-1]) - np.repeat(first[:-1], sizes) + 1
    alone = np.repeat(np.where(click[kept], APART, SEEN), sizes)
    taken = pa.array(kept)
    items = _items(hits.take(taken), texts[OBJECT].take(taken), is_query, of_query, sizes)
    seconds = np.where(times.states == GOOD, times.values, NONE)[kept]
    names = {
        "query": pc.if_else(pa.array(is_query), texts[QUERY].take(taken), ""),
        "user": pc.if_else(pa.array(is_query), texts[USER].take(taken), ""),
        "item": items,
    }
    sums, _ = sums_of(texts[SEARCH].take(taken))
    rows = Rows(
        sums,
        {kind: given_ids(kind, array, True) for kind, array in names.items()},
        np.where(of_query, position, alone),
        (~of_query & (alone == APART)).astype(np.int32),
        {
            "time": np.where(is_query, seconds, NONE),
            "day": np.where(is_query & (seconds >= 0), seconds // DAY, NONE),
            "whole": is_query.astype(np.int8),
        },
        {"click_time": np.repeat(np.where(is_query, NONE, seconds), sizes)},
        first=first,
        dates=unit != "plain",
        clock=unit != "plain",
    )
    counts["query_records"] = int(is_query.sum())
    return Converted(rows, rejects.all(), counts)


def _there(texts: pa.StringArray) -> Bools:
    found: Bools = pc.not_equal(texts, "").to_numpy(False)
    return found


def _among(texts: pa.StringArray, names: Sequence[str]) -> Bools:
    found: Bools = pc.is_in(texts, value_set=pa.array(list(names), pa.string())).to_numpy(False)
    return found


def _items(
    hits: pa.ListArray, objects: pa.StringArray, is_query: Bools, of_query: Bools, sizes: np.ndarray
) -> pa.StringArray:
    """The hits of queries and the objects of events, in the order of their records."""
    flat = as_texts(hits.filter(pa.array(is_query)).flatten())
    alone = objects.filter(pa.array(~is_query))
    place = np.where(of_query, np.cumsum(of_query) - 1, len(flat) + np.cumsum(~of_query) - 1)
    return pa.concat_arrays([flat, alone]).take(pa.array(place))
