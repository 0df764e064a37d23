"""A format is one record: what ingest does with a new one, whose log is two files."""

import json
from collections import Counter

import pyarrow as pa
import pytest

import logeval
from logeval.log.formats import registry
from logeval.log.formats.format import Format, Read
from logeval.log.rejects import Reject
from logeval.storage.schemas import SERPS


class Pairs(Format):
    """A file of pages, {"query": 7, "items": [1, 2]} a line, and one of clicks, [line, place]."""

    unit = "lines"

    def likeness(self, source, columns):
        return 0.8 if source.head[:1] in b"[{" else 0.0

    def read(self, reading):
        pages, clicks = sorted(reading.sources, key=lambda source: source.head[:1] == b"[")
        rows = _lines(pages)
        places = _lines(clicks)
        good = [(row, place) for row, place in places if row < len(rows)]
        missing = [(i, each) for i, each in enumerate(places) if each[0] >= len(rows)]
        bad = [Reject(i, "no such page", str(each)) for i, each in missing]
        serps = [_serp(i, row, [p for r, p in good if r == i]) for i, row in enumerate(rows)]
        table = pa.Table.from_pylist(serps, schema=SERPS)
        counts = Counter(lines=len(rows), queries=len(rows), clicks_matched=len(good))
        yield lambda: (table, Read(counts, file=reading.sources.index(pages)))
        counted = Counter(lines=len(places), rejected=len(bad))
        read = Read(counted, rejects=lambda: bad, file=reading.sources.index(clicks))
        yield lambda: (table.slice(0, 0), read)


def _lines(source):
    file = source.in_any_order()
    file.seek(0)
    return [json.loads(line) for line in file]


def _serp(number, row, places):
    n = len(row["items"])
    return {
        "session_id": number, "time": 0, "serp_id": 0, "query_id": row["query"], "test": False,
        "items": row["items"], "clicks": [int(k in places) for k in range(n)],
        "click_times": [None] * n,
    }  # fmt: skip


@pytest.fixture
def files(tmp_path, monkeypatch):
    pairs = Pairs(name="pairs", together=True)
    monkeypatch.setitem(registry.FORMATS, pairs.name, pairs)
    (tmp_path / "clicks").write_text("[0, 1]\n[5, 0]\n[1, 0]\n")
    (tmp_path / "pages").write_text(
        '{"query": 7, "items": [1, 2]}\n{"query": 8, "items": [3]}\n{"query": 7, "items": [2]}\n'
    )
    return [tmp_path / "clicks", tmp_path / "pages"]


def test_the_files_of_a_format_are_read_together(files, tmp_path):
    log = logeval.ingest(files, tmp_path / "out", max_bad=0.5, quiet=True)
    assert log.manifest["formats"] == ["pairs", "pairs"]
    assert log.serps()["clicks"].to_pylist() == [[0, 1], [1], [0]]
    assert log.counts == {"lines": 6, "queries": 3, "clicks_matched": 2, "rejected": 1}
    rows = (tmp_path / "out" / "rejects.tsv").read_text().splitlines()
    assert rows[1:] == [f"{files[0]}\t2\tno such page\t[5, 0]"]
    assert [each["name"] for each in log.manifest["inputs"]] == ["clicks", "pages"]


def test_too_much_of_one_file_is_an_error_of_that_file(files, tmp_path):
    with pytest.raises(logeval.LogevalError, match=r"clicks: 1 of 3 lines .*line 2: no such page"):
        logeval.ingest(files, tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()


def test_what_belongs_together_is_not_mixed_with_other_formats(files, tmp_path):
    (tmp_path / "serps.csv").write_text("query_id,items,clicks\n5,11,0\n")
    for given in ([tmp_path / "serps.csv", *files], [*files, tmp_path / "serps.csv"]):
        with pytest.raises(logeval.LogevalError, match="do it one by one"):
            logeval.ingest(given, tmp_path / "out", max_bad=0.5, quiet=True)


def test_a_format_that_generate_does_not_write_is_unknown_to_it(tmp_path):
    with pytest.raises(
        logeval.LogevalError, match="known: table, yandex-personalized, yandex-relpred"
    ):
        logeval.generate(tmp_path / "log", format="ubi", quiet=True)
