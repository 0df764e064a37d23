"""Rows per page and UBI records, against the slow reader."""

import json
import tempfile
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import logeval
from logeval.log.tables import pages as grouping
from logeval.log.tables import text as text_files
from logeval.log.tables.records import Records
from logeval.log.tables.values import BLANKS, scratch
from tests.log.named import adds_up, named, some
from tests.log.slow_tables import number, read_ubi

ITEM = st.sampled_from(["a", "b", "c", "7", "é"])
PAGE = st.fixed_dictionaries(
    {
        "query": st.sampled_from(["q", "r", "12", ""]),
        "items": st.lists(ITEM | st.just(""), max_size=5),
        "clicks": st.lists(st.sampled_from(["0", "1", "2", "true", "x", ""]), max_size=5),
        "positions": st.none() | st.lists(st.sampled_from(["1", "2", "9", ""]), max_size=5),
    }
)


def slow_pages(rows, positions):
    pages, rejected = [], 0
    for row in rows:
        clicks = [number(value) for value in row["clicks"]]
        places = row["positions"] if positions else None
        bad = not row["query"] or not row["items"] or "" in row["items"]
        bad |= any(c is False for c in clicks) or len(clicks) != len(row["items"])
        bad |= positions and (places is None or len(places) != len(row["items"]))
        bad |= positions and "" in (places or [])
        if bad:
            rejected += 1
            continue
        shown, order = {}, range(len(clicks))
        for k in sorted(order, key=lambda k: int(places[k]) if places else k):
            place = places[k] if places else k
            item, c = row["items"][k], clicks[k] or 0
            if place not in shown:
                shown[place] = [item, c]
            elif shown[place][0] == item:
                shown[place][1] += c
        pages.append(
            {"query": row["query"], "user": None, "items": [i for i, _ in shown.values()],
             "clicks": [c for _, c in shown.values()]}
        )  # fmt: skip
    return pages, rejected


@settings(max_examples=60, deadline=None)
@given(st.lists(PAGE, min_size=1, max_size=12), st.booleans(), st.sampled_from(["frame", "ndjson"]))
def test_pages_are_read_as_the_slow_reader_reads_them(rows, positions, kind):
    rows = [row if positions else {**row, "positions": None} for row in rows]
    given = [{k: v for k, v in row.items() if positions or k != "positions"} for row in rows]
    log = _ingested(given, kind)
    pages, rejected = slow_pages(rows, positions)
    assert named(log) == pages
    assert log.counts["rejected"] == rejected
    assert adds_up(log)


def _ingested(rows, kind):
    options = {"format": "table", "max_bad": 1.0, "quiet": True}
    if kind == "frame":
        return logeval.ingest(pd.DataFrame(rows), **options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return logeval.ingest(path, **options)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1 2  3", ["1", "2", "3"]),
        ("[1, 2]", ["1", "2"]),
        ('["a b", "c,d", null]', ["a b", "c,d", None]),
        ("['a b', 'c']", ["a b", "c"]),
        ("['a' 'b']", ["a", "b"]),
        ("[1 2 3]", ["1", "2", "3"]),
        ("[]", []),
        ("", None),
        ("- 7", [None, "7"]),
        ("[nan, 2.5]", [None, "2.5"]),
        ("[True, False]", ["True", "False"]),
        ("""["it's", 'so']""", ["it's", "so"]),
    ],
)
def test_lists_as_people_write_them(text, values):
    query = f"SELECT whole_list(t, '{BLANKS}') FROM (SELECT ? AS t)"
    assert scratch().execute(query, [text]).fetchall() == [(values,)]


RECORD = st.one_of(
    st.fixed_dictionaries(
        {
            "query_id": st.sampled_from(["1", "2", "3", "4"]),
            "user_query": st.sampled_from(["q", "r", "", None]),
            "client_id": st.sampled_from(["c", "d"]),
            "query_response_hit_ids": st.none() | st.lists(ITEM, max_size=4, unique=True),
            "timestamp": st.just("2024-01-01T00:00:00Z"),
        }
    ),
    st.fixed_dictionaries(
        {
            "action_name": st.sampled_from(["click", "click", "impression", "login"]),
            "query_id": st.sampled_from(["1", "2", "3", "4", "9", None]),
            "event_attributes": st.fixed_dictionaries(
                {
                    "object": st.fixed_dictionaries({"object_id": ITEM | st.just(7) | st.none()}),
                    "position": st.none()
                    | st.fixed_dictionaries({"ordinal": st.integers(0, 5) | st.none()}),
                }
            ),
            "timestamp": st.sampled_from([f"2024-01-01T00:00:0{k}Z" for k in range(3)]),
        }
    ),
    st.just({"index": {"_index": "ubi"}}),
    st.just("no object"),
)
COUNTED = (
    "rows", "rejected", "queries", "query_records", "queries_without_results", "records_other",
    "clicks_apart", "clicks_orphan", "views", "views_doubled", "views_orphan", "events_other",
    "events_without_query", "events_without_object", "pages_later", "searches_without_text",
)  # fmt: skip


@pytest.mark.parametrize("seconds", [True, False])
def test_every_ubi_file_has_its_own_kind_of_times(tmp_path, seconds):
    """Queries with ISO 8601, events with milliseconds since 1970, or the other way round."""
    times = {True: "2024-01-01T00:00:{:02d}Z", False: "17040672{:02d}000"}
    queries = [
        {"query_id": f"q{n}", "user_query": "shoes", "query_response_hit_ids": ["a", "b", "c"],
         "timestamp": _time(times[seconds], n)}
        for n in range(20)
    ]  # fmt: skip
    events = [
        {"action_name": "click", "query_id": f"q{n}", "timestamp": _time(times[not seconds], n + 5),
         "event_attributes": {"object": {"object_id": "b"}}}
        for n in range(20)
    ]  # fmt: skip
    paths = tmp_path / "queries.ndjson", tmp_path / "events.ndjson"
    for path, records in zip(paths, (queries, events), strict=True):
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    for order in (paths, paths[::-1]):
        log = logeval.ingest(list(order), quiet=True)
        assert log.counts["rejected"] == 0
        rows = log.serps(columns=["time", "click_times"]).sort_by("time")
        assert rows["time"].to_pylist() == list(range(20))
        clicks = rows["click_times"].to_pylist()
        assert clicks == [[None, n + 5, None] for n in range(20)]


@pytest.mark.parametrize("mostly", [True, False])
def test_clients_of_one_file_may_write_times_differently(tmp_path, mostly):
    """Most events of a file have ISO 8601, or milliseconds, and some the other."""
    times = {True: "2024-01-01T00:00:{:02d}.500Z", False: "17040672{:02d}500"}
    for n in range(20):
        page = {"query_id": f"q{n}", "user_query": "shoes", "query_response_hit_ids": ["a", "b"]}
        click = {"action_name": "click", "query_id": f"q{n}", "event_attributes": OBJECT}
        click["timestamp"] = _time(times[mostly if n % 3 else not mostly], n + 5)
        for name, record in (("q", page | {"timestamp": "2024-01-01T00:00:00Z"}), ("e", click)):
            with open(tmp_path / name, "a") as file:
                file.write(json.dumps(record) + "\n")
    for order in ("qe", "eq"):
        log = logeval.ingest([tmp_path / name for name in order], quiet=True)
        assert log.counts["rejected"] == 0
        clicks = sorted(log.serps("click_times")["click_times"].to_pylist())
        assert clicks == [[n + 5, None] for n in range(20)]


OBJECT = {"object": {"object_id": "a"}}


def _time(form, n):
    text = form.format(n)
    return int(text) if text.isdigit() else text


@settings(max_examples=60, deadline=None)
@given(
    st.lists(RECORD, min_size=1, max_size=30),
    st.sampled_from([200, 1 << 20]),
    st.sampled_from([2, 1 << 18]),
)
def test_ubi_records_are_read_as_the_slow_reader_reads_them(records, block, chunk):
    first = {"action_name": "login", "query_id": "1", "timestamp": "2024-01-01T00:00:00Z"}
    records = [first, *records]
    text = "".join(json.dumps(record) + "\n" for record in records)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(text_files, "BLOCK", block)
        patch.setattr(grouping, "CHUNK_ROWS", chunk)
        patch.setattr(Records, "_check", lambda format, tables: None)
        path = Path(folder) / "log"
        path.write_text(text)
        log = logeval.ingest(path, format="ubi", max_bad=1.0, quiet=True)
    given = [record if isinstance(record, dict) else None for record in records]
    pages, counts = read_ubi(given)
    assert named(log) == pages
    assert some({key: log.counts.get(key, 0) for key in COUNTED}) == some(
        {key: counts[key] for key in COUNTED}
    )
    assert adds_up(log)
