"""Rows per result: every rule, against an independent reader that goes row by row."""

import csv
import io
import json
import tempfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import logeval
from logeval.log.tables import pages as grouping
from logeval.log.tables import text as text_files
from tests.log.named import adds_up, named, some
from tests.log.slow_tables import read_results
from tests.log.tables.strategy import ROLES, ROWS

COUNTED = (
    "rows", "rejected", "results", "rows_repeated", "rows_doubled", "rows_cut", "rows_contrary",
    "clicks_apart", "clicks_orphan", "queries", "clicks_matched", "clicks_repeat",
    "pages_with_gaps", "pages_with_item_twice",
)  # fmt: skip


def as_csv(rows, delimiter=","):
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def as_parquet(rows):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), sink, row_group_size=7)
    return sink.getvalue().to_pybytes()


def as_feather(rows):
    sink = pa.BufferOutputStream()
    table = pa.Table.from_pylist(rows)
    with pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table, max_chunksize=5)
    return sink.getvalue().to_pybytes()


WRITERS = {
    "csv": as_csv,
    "tsv": lambda rows: as_csv(rows, "\t"),
    "ndjson": lambda rows: "".join(json.dumps(row) + "\n" for row in rows).encode(),
    "parquet": as_parquet,
    "feather": as_feather,
}


def ingested(files, **options):
    """A log of files given as bytes."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for i, content in enumerate(files):
            paths.append(Path(folder) / f"{i}")
            paths[-1].write_bytes(content)
        return logeval.ingest(paths, quiet=True, max_bad=1.0, format="long", **options)


def check(log, rows, **options):
    pages, counts = read_results(rows, ROLES, **options)
    assert named(log) == pages
    found = {key: log.counts[key] for key in COUNTED}
    assert some(found) == some({key: counts[key] for key in COUNTED})
    assert adds_up(log)


@settings(max_examples=40, deadline=None)
@given(
    ROWS,
    st.sampled_from(list(WRITERS)),
    st.sampled_from([40, 300, 1 << 20]),
    st.sampled_from([3, 1 << 18]),
    st.integers(1, 3),
)
def test_rows_in_any_file_are_read_as_the_slow_reader_reads_them(rows, kind, block, chunk, workers):
    content = WRITERS[kind](rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "BLOCK", max(block, len(content) // 100))
        patch.setattr(grouping, "CHUNK_ROWS", chunk)
        check(ingested([content], workers=workers), rows)


@settings(max_examples=40, deadline=None)
@given(ROWS, ROWS, st.integers(1, 4))
def test_a_search_may_be_in_several_files_and_lists_are_cut(rows, more, positions):
    log = ingested([as_csv(rows), as_csv(more)], positions=positions)
    check(log, rows + more, limit=positions)


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_a_data_frame_is_read_as_its_csv(rows):
    frame = pd.DataFrame(rows)
    check(logeval.ingest(frame, quiet=True, max_bad=1.0, format="long"), rows)


def test_types_of_other_writers_are_taken():
    rows = [
        {"search_id": 1, "query": "q", "item": 10, "position": 1.0, "clicked": True},
        {"search_id": 1, "query": "q", "item": 11, "position": 2.0, "clicked": None},
        {"search_id": 2, "query": "r", "item": 10, "position": 1.0, "clicked": False},
    ]
    frame = pd.DataFrame(rows).astype({"query": "category", "item": "uint32"})
    log = logeval.ingest(frame, quiet=True)
    assert named(log) == [
        {"query": "q", "user": None, "items": ["10", "11"], "clicks": [1, 0]},
        {"query": "r", "user": None, "items": ["10"], "clicks": [0]},
    ]
    assert log.names.kinds == ["query"]  # items stay numbers
    assert log.counts["clicks_empty"] == 1
    table = pa.Table.from_pandas(frame)
    assert named(logeval.ingest(table, quiet=True)) == named(log)


def test_every_rule_by_hand():
    rows = [
        *[("s", "q", "a", 1, 1), ("s", "q", "b", 2, 0), ("s", "q", "b", 2, 1)],  # again
        *[("s", "q", "c", 2, 1), ("s", "q", "d", 5, 0), ("s", "q", "a", "", 3)],  # doubled, a gap
        *[("s", "q", "z", "", 1), ("s", "other", "e", 6, 1), ("s", "q", "d", 6, 0)],  # not shown
        *[("t", "q", "a", "one", 0), ("t", "", "a", 1, 0), ("", "q", "a", 1, 0)],
    ]
    names = ["search_id", "query", "item", "position", "clicks"]
    log = logeval.ingest(
        pd.DataFrame([dict(zip(names, map(str, row), strict=True)) for row in rows]),
        quiet=True, max_bad=0.5, positions=3,
    )  # fmt: skip
    assert named(log) == [
        {"query": "q", "user": None, "items": ["a", "b", "d"], "clicks": [4, 1, 0]}
    ]
    assert some(log.counts) == {
        "rows": 12, "rejected": 3, "results": 3, "rows_repeated": 1, "rows_doubled": 1,
        "clicks_apart": 1, "clicks_orphan": 1, "rows_contrary": 1, "rows_cut": 1, "queries": 1,
        "clicks_matched": 2, "clicks_repeat": 3, "pages_with_gaps": 1, "clicks_dropped": 2,
    }  # fmt: skip
    rejected = (log.path / "rejects.tsv").read_text().splitlines()[1:]
    assert [line.split("\t")[1:] for line in rejected] == [
        ["10", "position is no whole number from 0 on", "one"],
        ["11", "query is empty", ""],
        ["12", "search is empty", ""],
    ]


def test_a_search_is_a_user_at_a_time_with_a_query_where_it_has_no_id():
    frame = pd.DataFrame(
        {
            "user": ["u", "v", "u", "u"], "time": ["2024-01-01 10:00:00"] * 4,
            "query": ["q", "q", "q", "r"], "url": list("abcd"), "rank": [1, 1, 2, 1],
            "click": [0, 1, 1, 0],
        }
    )  # fmt: skip
    log = logeval.ingest(frame, quiet=True)
    assert [page["items"] for page in named(log)] == [["a", "c"], ["b"], ["d"]]
    assert log.serps()["day"].to_pylist() == [1, 1, 1]
    assert log.serps()["time"].to_pylist() == [36_000] * 3


def test_columns_together_are_a_search_if_the_user_says_so(tmp_path):
    text = "sid,q,u,p,c\n1,x,a,1,0\n1,y,a,1,1\n1,x,b,2,1\n2,x,a,1,0\n"
    (tmp_path / "a.csv").write_text(text)
    columns = {"query": "q", "item": "u", "position": "p", "clicks": "c", "search": "sid+q"}
    log = logeval.ingest(tmp_path / "a.csv", columns=columns, quiet=True)
    assert [page["items"] for page in named(log)] == [["a", "b"], ["a"], ["a"]]


@pytest.mark.parametrize(
    ("times", "days"),
    [
        (["2024-03-09", "2024-03-10", "2024-03-09"], [1, 2, 1]),
        (["2024-03-09T23:59Z", "2024-03-10T00:00+00:00", "2024-03-12T01:00+02:00"], [1, 2, 3]),
        ([1_710_000_000, 1_710_086_400, 1_710_000_001], [1, 2, 1]),
        ([1_710_000_000_123, 1_710_086_400_000, 1_710_000_001_000], [1, 2, 1]),
        (["2024-03-09 10:00", "", "2024-03-08 10:00"], [2, None, 1]),
        (list(pd.to_datetime(["2024-03-09", "2024-03-10", "2024-03-09"])), [1, 2, 1]),
        (list(pd.to_datetime(["2024-03-09", "2024-03-10", None], utc=True)), [1, 2, None]),
        ([5, 70, 1_000], [None] * 3),
    ],
    ids=["dates", "zones", "seconds", "milliseconds", "missing", "timestamps", "UTC", "plain"],
)  # fmt: skip
def test_times_give_days_counted_from_the_first(times, days):
    frame = pd.DataFrame(
        {"search_id": [1, 2, 3], "query": "q", "item": 1, "position": 1, "clicks": 1, "time": times}
    )
    log = logeval.ingest(frame, quiet=True)
    assert log.serps()["day"].to_pylist() == days


def test_days_times_sessions_and_flags_are_kept():
    frame = pd.DataFrame(
        {
            "session_id": ["x", "x", "y"], "serp_id": [0, 1, 0], "user_id": [7, 7, 8],
            "day": [3, 3, 4], "time": [0, 20, 5], "query_id": [1, 2, 1], "region_id": [0, 0, 2],
            "test": [False, True, False], "item": [5, 6, 7], "domain": ["a.com", "b.com", ""],
            "position": 1, "clicks": [1, 0, 2], "click_time": [9, None, 8], "random": [0, 1, 0],
            "propensity": [0.5, 1.0, None],
        }
    )  # fmt: skip
    log = logeval.ingest(frame, quiet=True)
    rows = log.serps().to_pylist()
    assert rows[0]["session_id"] == rows[1]["session_id"] != rows[2]["session_id"]
    kept = ["user_id", "day", "time", "serp_id", "query_id", "region_id", "test", "random"]
    assert [[row[name] for name in kept] for row in rows] == [
        [7, 3, 0, 0, 1, 0, False, False],
        [7, 3, 20, 1, 2, 0, True, True],
        [8, 4, 5, 0, 1, 2, False, False],
    ]
    assert [row["click_times"] for row in rows] == [[9], [None], [8]]
    assert [row["propensities"] for row in rows] == [[0.5], [1.0], None]
    domains = [row["domains"] and log.names.names_of("domain", row["domains"]) for row in rows]
    assert domains == [["a.com"], ["b.com"], None]
    assert log.counts["test_queries"] == 1


def test_numbers_at_first_and_text_later_are_all_text(tmp_path):
    rows = [f"{i},q,{i % 7},1,0\n" for i in range(30_000)] + ["x,q,B007,1,1\n"]
    (tmp_path / "a.csv").write_text("search_id,query,item,position,clicks\n" + "".join(rows))
    log = logeval.ingest(tmp_path / "a.csv", tmp_path / "out", quiet=True)
    assert log.names.kinds == ["query", "item"]
    assert named(log)[-1]["items"] == ["B007"]
    assert named(log)[8]["items"] == ["1"]
    assert log.counts["queries"] == 30_001


def test_numbers_in_one_file_and_text_in_another_are_text(tmp_path):
    for name, item in (("a", "12"), ("b", "x12"), ("c", "012")):
        text = f"search_id,query,item,position,clicks\n{name},q,{item},1,1\n"
        (tmp_path / f"{name}.csv").write_text(text)
    log = logeval.ingest([tmp_path / f"{name}.csv" for name in "abc"], quiet=True)
    assert [page["items"] for page in named(log)] == [["12"], ["x12"], ["012"]]


def test_names_that_differ_by_case_blanks_or_unicode_form_are_kept_apart_and_said(capsys):
    items = ["Shoe", "shoe", "é", "e\u0301", "hat", "hat "]
    frame = pd.DataFrame(
        {"search_id": range(6), "query": "q", "item": items, "position": 1, "clicks": 1}
    )
    log = logeval.ingest(frame)
    assert [page["items"][0] for page in named(log)] == items
    said = capsys.readouterr().err
    assert "3 names of item ids differ only by case, blanks or Unicode form, as" in said
    assert "kept apart" in said


@example(["a", "b"])
@given(st.lists(st.text(), min_size=1, max_size=30))
@settings(max_examples=60, deadline=None)
def test_any_text_is_a_name(texts):
    texts = [text for text in texts if text] or ["a"]
    kinds = ("csv", "ndjson")
    log = ingested(
        WRITERS[kind](
            [
                {"search_id": f"{kind}{i}", "query": "q", "item": text, "position": "1"}
                | {"clicked": "1"}
                for i, text in enumerate(texts)
            ]
        )
        for kind in kinds
    )
    ids = [items[0] for items in log.serps("items")["items"].to_pylist()]
    assert log.names.names_of("item", ids) == texts * 2
    assert log.names.id_of("item", texts[-1]) == ids[-1]
