"""Every layout from a file to SERPs, by its columns alone."""

import gzip

import pandas as pd
import pytest
from zstandard import ZstdCompressor

import logeval
from logeval.errors import LogevalError
from tests.log import written
from tests.log.named import adds_up, named, some

PAGES = written.pages(60, seed=4)
NUMBERED = written.pages(60, seed=5, names=False)


def put(tmp_path, **files):
    """Files by their names; a dot in a name is a double underscore."""
    paths = []
    for name, content in files.items():
        paths.append(tmp_path / name.replace("__", "."))
        paths[-1].write_bytes(content)
    return paths


def plain(found, user=True):
    """What is the same in all layouts."""
    return [
        {
            "query": str(page["query"]),
            "user": str(page["user"]) if user else None,
            "items": [str(item) for item in page["items"]],
            "clicks": page["clicks"],
        }
        for page in found
    ]


@pytest.mark.parametrize("packed", [bytes, gzip.compress, ZstdCompressor().compress])
@pytest.mark.parametrize(
    "content",
    [
        written.long_csv(PAGES),
        written.csv_of(written.results(PAGES), "\t"),
        written.csv_of(written.results(PAGES), ";"),
        written.ndjson_of(written.results(PAGES)),
    ],
    ids=["csv", "tsv", "semicolons", "ndjson"],
)
def test_rows_per_result_as_text(tmp_path, content, packed):
    (path,) = put(tmp_path, log=packed(content))
    log = logeval.ingest(path, tmp_path / "out", quiet=True)
    assert log.manifest["formats"] == ["long"]
    assert named(log) == plain(PAGES)
    assert log.serps()["day"].to_pylist() == [
        (page["time"] - written.START) // 86_400 + 1 for page in PAGES
    ]
    assert adds_up(log)


@pytest.mark.parametrize("write", [written.parquet_of, written.feather_of])
def test_rows_per_result_as_columns(tmp_path, write):
    (path,) = put(tmp_path, log=write(written.results(PAGES)))
    log = logeval.ingest(path, tmp_path / "out", quiet=True)
    assert named(log) == plain(PAGES)


@pytest.mark.parametrize(
    "content",
    [
        written.parquet_of(written.page_rows(PAGES)),
        written.ndjson_of(written.page_rows(PAGES)),
        written.csv_of(written.page_rows(PAGES)),  # Python's lists as text
    ],
    ids=["parquet", "ndjson", "csv"],
)
def test_rows_per_page_with_text_ids(tmp_path, content):
    (path,) = put(tmp_path, log=content)
    log = logeval.ingest(path, tmp_path / "out", quiet=True)
    assert log.manifest["formats"] == ["table"]
    assert named(log) == plain(PAGES)
    assert log.serps()["session_id"].to_pylist() == [page["session"] for page in PAGES]
    assert log.serps()["day"].to_pylist()[-1] == (PAGES[-1]["time"] - written.START) // 86_400 + 1
    assert adds_up(log)


@pytest.mark.parametrize("wrapped", [False, True])
def test_ubi(tmp_path, wrapped):
    queries, events = written.ubi(PAGES, wrapped)
    paths = put(tmp_path, queries__ndjson=queries, events__ndjson=events)
    log = logeval.ingest(paths, tmp_path / "out", quiet=True)
    assert log.manifest["formats"] == ["ubi", "ubi"]
    assert named(log) == plain(PAGES)
    shown = sum(len(page["items"]) for page in PAGES)
    assert (log.counts["events_other"], log.counts["views"]) == (1, shown)
    assert adds_up(log)
    (both,) = put(tmp_path, both=events + queries)
    assert named(logeval.ingest(both, quiet=True)) == plain(PAGES)


def test_ubi_as_parquet_and_as_frames(tmp_path):
    tables = [pd.read_json(text, lines=True) for text in map(_text, written.ubi(PAGES))]
    for name, table in zip(("q", "e"), tables, strict=True):
        table.to_parquet(tmp_path / name)
    log = logeval.ingest([tmp_path / "q", tmp_path / "e"], quiet=True)
    assert named(log) == plain(PAGES)


def _text(content):
    import io

    return io.StringIO(content.decode())


def test_actions_that_are_clicks_and_views_that_say_what_was_seen(tmp_path):
    queries, events = written.ubi(PAGES)
    events = events.replace(b'"click"', b'"add_to_cart"')
    some_seen = b"".join(
        line + b"\n"
        for line in events.splitlines()
        if b'"impression"' not in line or b'"ordinal": 1}' in line or b'"ordinal": 0}' in line
    )
    paths = put(tmp_path, q=queries, e=some_seen)
    log = logeval.ingest(paths, actions=["add_to_cart"], views=["impression"], quiet=True)
    expected = []
    for i, page in enumerate(PAGES):
        seen = [k for k in range(len(page["items"])) if page["clicks"][k] or k + i % 2 in (0, 1)]
        expected.append({**plain([page])[0]})
        for key in ("items", "clicks"):
            expected[-1][key] = expected[-1][key][: max(seen) + 1]
    assert named(log) == expected
    assert log.counts["rows_unseen"] > 0
    assert adds_up(log)
    with pytest.raises(LogevalError, match="those of UBI"):
        logeval.ingest(paths, actions=["click"], format="long", quiet=True)


def test_expedia(tmp_path):
    (path,) = put(tmp_path, train__csv=written.expedia(NUMBERED))
    log = logeval.ingest(path, tmp_path / "out", quiet=True)
    assert log.manifest["formats"] == ["expedia"]
    assert named(log, "random") == [
        {**page, "random": given["random"]}
        for page, given in zip(plain(NUMBERED, user=False), NUMBERED, strict=True)
    ]
    assert log.names.kinds == []
    assert log.counts["pages_with_gaps"] == sum(len(page["items"]) > 4 for page in NUMBERED)
    booked = logeval.ingest(path, format="expedia", columns={"clicks": "booking_bool"}, quiet=True)
    assert booked.counts["clicks_matched"] == 0
    test = b"\n".join(b",".join(line.split(b",")[:4]) for line in path.read_bytes().split(b"\n"))
    path.write_bytes(test)
    with pytest.raises(LogevalError, match="there is no column 'srch_destination_id'"):
        logeval.ingest(path, format="expedia", quiet=True)


def test_baidu_parts_count_their_searches_each_by_itself(tmp_path):
    paths = put(tmp_path, a=written.baidu(PAGES[:30]), b=written.baidu(PAGES[30:], part=1))
    log = logeval.ingest(paths, tmp_path / "out", quiet=True)
    assert set(log.manifest["formats"]) == {"baidu-ultr"}
    assert [page["clicks"] for page in named(log)] == [page["clicks"] for page in PAGES]
    hashed = [[written.hash_of(item) for item in page["items"]] for page in PAGES]
    assert [page["items"] for page in named(log)] == hashed
    assert len({page["query"] for page in named(log)}) == len({page["query"] for page in PAGES})


def test_baidu_as_it_was_published(tmp_path, monkeypatch):
    paths = put(
        tmp_path, a=gzip.compress(written.baidu_raw(PAGES[:30])), b=written.baidu_raw(PAGES[30:])
    )
    for size in (1 << 20, 700):
        monkeypatch.setattr("logeval.log.tables.text.BLOCK", size)
        log = logeval.ingest(paths, quiet=True)
        assert set(log.manifest["formats"]) == {"baidu-ultr-raw"}
        assert [page["clicks"] for page in named(log)] == [page["clicks"] for page in PAGES]
        first = " ".join(str(ord(c)) for c in PAGES[0]["query"])
        assert named(log)[0]["query"] == first
        assert adds_up(log)


def test_damaged_lines_of_baidu_are_rejected(tmp_path):
    good = written.baidu_raw(PAGES[:5])
    bad = b"1\tabc\tx\ty\t-\n" + b"7\n" + b"x\tabc\tx\ty\t-\t1\t-\n"
    (path,) = put(tmp_path, a=b"1\t" + b"a\t" * 6 + b"\n" + good + bad)
    log = logeval.ingest(path, format="baidu-ultr-raw", max_bad=0.5, quiet=True)
    rejected = [row.split("\t")[1:3] for row in (log.path / "rejects.tsv").read_text().splitlines()]
    lines = good.count(b"\n") + 1
    assert rejected[1:] == [
        ["1", "a document without a query"],
        [f"{lines + 1}", "5 fields"],
        [f"{lines + 2}", "a query without text"],
        [f"{lines + 3}", "a document without a query"],
    ]
    assert adds_up(log)
    assert log.counts["queries"] == 5


def test_yandex_from_the_hub(tmp_path):
    (path,) = put(tmp_path, train__parquet=written.hub(NUMBERED))
    log = logeval.ingest(path, tmp_path / "out", quiet=True)
    assert log.manifest["formats"] == ["table"]
    assert log.names.kinds == []
    assert named(log) == plain(NUMBERED, user=False)


def test_one_log_is_the_same_rows_in_every_layout(tmp_path):
    columns = ["session_id", "user_id", "serp_id", "query_id", "items", "clicks"]
    rows = [
        row | {"session_id": page["session"], "serp_id": page["serp"]}
        for page in NUMBERED
        for row in written.results([page])
    ]
    for row in rows:
        del row["search_id"]
    paged = [
        row | {"serp_id": page["serp"]}
        for row, page in zip(written.page_rows(NUMBERED), NUMBERED, strict=True)
    ]
    paths = put(
        tmp_path,
        long=written.csv_of(rows),
        pages=written.parquet_of(paged),
        yandex=written.yandex(NUMBERED),
    )
    logs = [logeval.ingest(path, quiet=True) for path in paths]
    tables = [log.serps(columns=columns) for log in logs]
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])
    # with text ids, too: the same rows but for the ids, and those have the names
    texts = [{k: f"n{v}" if k in ("search_term", "url") else v for k, v in r.items()} for r in rows]
    (path,) = put(tmp_path, texts=written.csv_of(texts))
    log = logeval.ingest(path, quiet=True)
    assert log.serps(columns=["session_id", "clicks"]).equals(
        tables[0].select(["session_id", "clicks"])
    )
    for page, row in zip(named(log), tables[0].to_pylist(), strict=True):
        assert page["items"] == [f"n{item}" for item in row["items"]]
        assert page["query"] == f"n{row['query_id']}"


def test_scattered_rows_give_the_same_pages(tmp_path):
    import random

    rows = written.results(PAGES)
    shuffled = rows[1:]
    random.Random(1).shuffle(shuffled)
    (path,) = put(tmp_path, log=written.csv_of([rows[0], *shuffled]))
    found = named(logeval.ingest(path, quiet=True))
    key = repr
    assert sorted(found, key=key) == sorted(plain(PAGES), key=key)
    assert found[0] == plain(PAGES)[0]


def test_counts_of_a_good_log_are_few():
    log = logeval.ingest(pd.DataFrame(written.results(PAGES)), quiet=True)
    twice = {"rows", "results", "queries", "clicks_matched"}
    assert set(some(log.counts)) == twice
