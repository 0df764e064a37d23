"""Tables that are easily read wrong: every row is accounted for, or the log is refused."""

import json

import numpy as np
import pandas as pd
import pytest

import logeval
from logeval.errors import LogevalError
from tests.log.named import named

HEAD = ["search_id", "query", "item", "position", "clicks"]


def written(folder, rows, delimiter="\t", name="a.tsv", head=HEAD):
    """A file without quoting, a row per line."""
    lines = [delimiter.join(map(str, row)) for row in [head, *rows]]
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / name


def searches(n, results=2):
    return [
        [f"s{i}", f"q{i % 7}", f"i{k}", k + 1, int(k == 0)]
        for i in range(n)
        for k in range(results)
    ]


def refused_or_whole(path, rows, pages=None):
    """What the error says; None where every row was read, and none rejected."""
    try:
        counts = logeval.ingest(path, max_bad=1.0, quiet=True).counts
    except LogevalError as error:
        return str(error)
    assert (counts["rows"], counts["rejected"]) == (rows, 0)
    assert pages is None or counts["queries"] == pages
    return None


@pytest.mark.parametrize("delimiter", ["\t", ","])
@pytest.mark.parametrize(
    "quoted",
    [
        {1_001: '"shoes'},  # open to the end
        {1_001: '"shoes', 3_001: '"boots'},  # text follows the second quote
        {1_001: '"shoes', 1_005: 'tv 17"'},  # ends a value: as many fields as a record has
        {1_001: '"', 1_005: '"'},
    ],
    ids=["once", "twice", "inches", "alone"],
)
def test_a_quote_that_only_begins_a_value_takes_no_rows_with_it(tmp_path, delimiter, quoted):
    rows = searches(2_500)
    for row, query in quoted.items():
        rows[row - 1][1] = query
    error = refused_or_whole(written(tmp_path, rows, delimiter), len(rows))
    assert error is None or ("a.tsv" in error and "1002" in error)


def test_a_quote_in_the_last_column_takes_no_rows_with_it(tmp_path):
    rows = [[*row[:1], *row[2:], row[1]] for row in searches(50)]
    rows[10][-1], rows[30][-1] = '"shoes', 'tv 17"'
    head = ["search_id", "item", "position", "clicks", "query"]
    refused_or_whole(written(tmp_path, rows, head=head), len(rows))


def test_a_refused_file_is_read_in_the_way_that_the_error_names(tmp_path):
    rows = searches(2_500)
    rows[1_000][1] = rows[1_001][1] = '"shoes'
    frame = pd.read_csv(written(tmp_path, rows), sep="\t", quoting=3)
    log = logeval.ingest(frame, quiet=True)
    assert log.counts["rows"] == len(rows)
    assert named(log)[500]["query"] == '"shoes'


@pytest.mark.parametrize("delimiter", ["\t", ","])
def test_values_that_are_quoted_as_they_should_be_are_read(tmp_path, delimiter):
    rows = searches(300)
    query = 'running shoes,\tsize 7"\r\nfor "men"\n\nand women'
    frame = pd.DataFrame(rows, columns=HEAD)
    frame.loc[frame.index % 4 < 2, "query"] = query
    frame.to_csv(tmp_path / "a.tsv", sep=delimiter, index=False)
    log = logeval.ingest(tmp_path / "a.tsv", quiet=True)
    assert (log.counts["rows"], log.counts["queries"]) == (600, 300)
    assert [page["query"] == query for page in named(log)] == [i % 2 == 0 for i in range(300)]


LARGE = 2**53 + np.arange(40)


def test_searches_whose_ids_are_floats_are_kept_apart_or_refused():
    frame = pd.DataFrame(
        {"search_id": LARGE, "query": "q", "item": "i", "position": 1, "clicks": 1}
    )
    assert logeval.ingest(frame, quiet=True).counts["queries"] == 40
    missing = frame.astype({"search_id": "float64"})
    missing.loc[0, "search_id"] = None
    with pytest.raises(LogevalError, match=r"search_id.*Int64"):
        logeval.ingest(missing, max_bad=1.0, quiet=True)
    for kind in ("Int64", "string"):
        mended = frame.astype({"search_id": kind})
        mended.loc[0, "search_id"] = None
        log = logeval.ingest(mended, max_bad=1.0, quiet=True)
        assert (log.counts["queries"], log.counts["rejected"]) == (39, 1)
    small = missing.assign(search_id=missing["search_id"] - 2.0**53 + 1)
    assert logeval.ingest(small, max_bad=1.0, quiet=True).counts["queries"] == len(
        small["search_id"].dropna().unique()
    )


@pytest.mark.parametrize("column", ["query", "item", "user_id"])
def test_other_ids_that_are_floats_are_refused_likewise(column):
    frame = pd.DataFrame(
        {
            "search_id": range(40),
            "query": "q",
            "item": "i",
            "position": 1,
            "clicks": 1,
            "user_id": 1,
        }
    ).assign(**{column: LARGE.astype(float)})
    with pytest.raises(LogevalError, match=column):
        logeval.ingest(frame, quiet=True)


def test_floats_of_half_the_size_hold_smaller_ids():
    frame = pd.DataFrame(
        {"search_id": range(40), "query": "q", "position": 1, "clicks": 1,
         "item": (2**24 + np.arange(40)).astype("float32")}
    )  # fmt: skip
    with pytest.raises(LogevalError, match="item"):
        logeval.ingest(frame, quiet=True)


def test_lists_of_floats_are_refused_likewise():
    frame = pd.DataFrame({"query": ["q"], "items": [[2.0**53, 2.0**53 + 2]], "clicks": [[1, 0]]})
    with pytest.raises(LogevalError, match="items"):
        logeval.ingest(frame, quiet=True)


def test_large_whole_numbers_after_floats_are_kept_apart_or_refused(tmp_path):
    ids = [float(k) for k in range(2_000)] + [2**53 + k for k in range(1, 41)]
    rows = [dict(zip(HEAD, [i, "q", "i", 1, 1], strict=True)) for i in ids]
    (tmp_path / "a.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    error = refused_or_whole(tmp_path / "a.ndjson", len(ids), pages=len(ids))
    assert error is None or "search_id" in error


PER = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
SECONDS = 1_710_028_800 + 43_200 * np.arange(10)


def days_of(times, parts=1):
    frame = pd.DataFrame(
        {"search_id": range(len(times)), "query": "q", "item": "i", "position": 1, "clicks": 1,
         "time": times}
    )  # fmt: skip
    cut = np.array_split(np.arange(len(times)), parts)
    return logeval.ingest([frame.iloc[part] for part in cut], quiet=True).serps()["day"].to_pylist()


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("second", PER)
@pytest.mark.parametrize("first", PER)
def test_a_log_with_times_in_two_units_has_the_days_of_either(first, second, parts):
    times = [int(t) * PER[first if k < 5 else second] for k, t in enumerate(SECONDS)]
    assert days_of(times, parts) == days_of(SECONDS.tolist()) == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def test_times_around_2001_have_one_unit():
    """In milliseconds, when these had 13 digits for the first time."""
    start = 1_000_000_000 - 86_400
    times = [start + 43_200 * k for k in range(6)]
    assert days_of([1_000 * t for t in times]) == days_of(
        list(pd.to_datetime(times, unit="s").as_unit("s"))
    )


def test_clicks_on_one_result_are_added_up_or_refused():
    frame = pd.DataFrame(
        {"search_id": 1, "query": "q", "item": "i", "position": 1, "clicks": [2**30, 2**30 - 1]}
    )
    log = logeval.ingest(frame, quiet=True)
    assert log.serps()["clicks"].to_pylist() == [[2**31 - 1]]
    assert log.counts["clicks_repeat"] == 2**31 - 2
    for apart in (1, None):
        with pytest.raises(LogevalError, match="clicks"):
            logeval.ingest(frame.assign(clicks=2**31 - 1, position=[1.0, apart]), quiet=True)


@pytest.mark.parametrize("items", [["a", "a"], ["a", "b"]], ids=["one cell", "in all"])
def test_counts_whose_sum_is_no_number_are_refused(items):
    frame = pd.DataFrame(
        {"query": "q", "item": items, "position": 1, "impressions": 2**62, "clicks": 2**62}
    )
    log = logeval.ingest(frame.assign(impressions=2**61, clicks=1), format="counts", quiet=True)
    assert (log.counts["impressions"], log.counts["clicks"]) == (2**62, 2)
    with pytest.raises(LogevalError, match="impressions"):
        logeval.ingest(frame, format="counts", quiet=True)


def test_a_mark_at_the_start_of_a_name_stays_wherever_the_file_is_cut(tmp_path):
    """Every row begins with one, so that one stands where a block of the reader does."""
    rows = [["\ufeffi", "q", f"s{i}", 1, 1, "x" * 2_000] for i in range(6_000)]
    head = ["item", "query", "search_id", "position", "clicks", "note"]
    path = written(tmp_path, rows, ",", head=head)
    assert path.stat().st_size > 10 << 20
    log = logeval.ingest(path, quiet=True)
    assert log.names.table("item")["name"].to_pylist() == ["\ufeffi"]
    assert (log.counts["rows"], log.counts["queries"]) == (6_000, 6_000)


@pytest.mark.parametrize("apart", [False, True], ids=["neighbours", "apart"])
def test_rows_of_a_search_that_disagree_on_random_order_are_counted(apart):
    rows = [
        {"search_id": s, "query": "q", "item": k, "position": k, "clicks": 1, "random": flag}
        for s, flags in enumerate([[1, 1, 1], [0, 0, 0], [0, 1, 0], [1, None, None], [1, 1, 0]])
        for k, flag in enumerate(flags, 1)
    ]
    frame = pd.DataFrame(rows)
    if apart:
        frame = frame.sort_values("position", kind="stable")
    log = logeval.ingest(frame, quiet=True)
    found = sorted(
        zip(log.serps()["session_id"].to_pylist(), log.serps()["random"].to_pylist(), strict=True)
    )
    assert [random for _, random in found] == [True, False, False, True, False]
    assert log.counts["pages_random_unclear"] == 2
    assert log.counts["results"] == 15


@pytest.mark.parametrize("hits", ["a,b,c", "a, b, c", "a b c", '["a", "b", "c"]', "[a, b, c]"])
def test_hits_as_text_are_several_items(tmp_path, hits):
    queries = [
        {"query_id": "1", "user_query": "q", "client_id": "u", "query_response_hit_ids": hits}
    ]
    event = {
        "action_name": "click",
        "query_id": "1",
        "event_attributes": {"object": {"object_id": "b"}},
    }
    path = tmp_path / "a.ndjson"
    path.write_text("".join(json.dumps(row) + "\n" for row in [*queries, event]))
    log = logeval.ingest(path, quiet=True)
    assert [(page["items"], page["clicks"]) for page in named(log)] == [
        (["a", "b", "c"], [0, 1, 0])
    ]
    assert log.counts.get("clicks_orphan", 0) == 0
