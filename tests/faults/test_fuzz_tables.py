"""Tables that people bring, damaged: read as an independent reader reads them, or an error of ours.

``make faults`` takes many cases, ``make test`` a seeded few.
"""

import random

import pytest

import logeval
from logeval.errors import LogevalError
from logeval.log.tables import text as text_files
from tests.faults.test_fuzz import cases, damaged
from tests.log import written
from tests.log.named import adds_up, named
from tests.log.slow_tables import read_results, records_of, rows_of_csv, rows_of_json
from tests.log.tables.strategy import ROLES

PAGES = written.pages(12, seed=8)
NUMBERED = written.pages(12, seed=9, names=False)
NAMES = ("search_id", "user_id", "query", "item", "position", "clicked")


def rows():
    return [
        dict(zip(NAMES, (r["search_id"], r["user_id"], r["search_term"], r["url"], r["position"],
                         r["is_click"]), strict=True))
        for r in written.results(PAGES)
    ]  # fmt: skip


def quoted(content):
    """With quotes and ends of lines in values."""
    return content.replace(b"running shoes, no. 1", b'running "shoes"\nno. 1').replace(
        b'"running "shoes"\nno. 1"', b'"running ""shoes""\nno. 1"'
    )


def ingested(tmp_path, content, **options):
    (tmp_path / "log").write_bytes(content)
    options = {"format": "long", "max_bad": 1.0, "quiet": True} | options
    return logeval.ingest(tmp_path / "log", **options)


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_damaged_rows_are_read_as_the_slow_reader_reads_them(tmp_path, monkeypatch, delimiter):
    rng = random.Random(delimiter)
    whole = quoted(written.csv_of(rows(), delimiter))
    header = records_of(whole, delimiter)[0]
    compared = 0
    for case in range(cases(60, 50_000)):
        content = damaged(whole, rng)
        if content.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"{", b"[", b"PAR1", b"ARROW1")):
            continue
        monkeypatch.setattr(text_files, "BLOCK", rng.choice([200, 1000, 1 << 20]))
        records = records_of(content.removeprefix(b"\xef\xbb\xbf"), delimiter)
        try:
            log = ingested(tmp_path, content)
        except LogevalError as error:
            log, said = None, str(error)
        intact = records is not None and len(records) > 1 and records[0] == header
        assert log is not None or not intact, f"case {case}: {said} for {content!r}"
        if log is None:
            continue
        assert adds_up(log)
        if intact:
            found, counts = read_results(rows_of_csv(content, NAMES, delimiter), ROLES)
            assert named(log) == found, f"case {case}: {content!r}"
            assert log.counts["rejected"] == counts["rejected"], f"case {case}: {content!r}"
            compared += 1
    assert compared > 20


def test_damaged_objects_are_read_as_the_slow_reader_reads_them(tmp_path, monkeypatch):
    rng = random.Random("json")
    whole = written.ndjson_of(rows())
    compared = 0
    for case in range(cases(60, 50_000)):
        content = damaged(whole, rng)
        monkeypatch.setattr(text_files, "BLOCK", rng.choice([500, 1 << 20]))
        try:
            log = ingested(tmp_path, content)
        except LogevalError:
            continue
        assert adds_up(log)
        objects = rows_of_json(content.removeprefix(b"\xef\xbb\xbf"))
        if {*NAMES} == {name for row in objects if row for name in row} and _plain(objects):
            found, counts = read_results(objects, ROLES)
            assert named(log) == found, f"case {case}: {content!r}"
            assert log.counts["rejected"] == counts["rejected"], f"case {case}: {content!r}"
            compared += 1
    assert compared > 20


def _plain(objects):
    """Whether values are texts, whole numbers or missing: nobody says what else they are."""
    values = [value for row in objects if row for value in row.values()]
    return all(value is None or type(value) in (str, int) for value in values)


OTHERS = {
    "long.parquet": (lambda: written.parquet_of(written.results(PAGES)), {}),
    "long.feather": (lambda: written.feather_of(written.results(PAGES)), {}),
    "pages.csv": (lambda: written.csv_of(written.page_rows(PAGES)), {"format": "table"}),
    "pages.ndjson": (lambda: written.ndjson_of(written.page_rows(PAGES)), {"format": "table"}),
    "pages.parquet": (lambda: written.parquet_of(written.page_rows(PAGES)), {"format": "table"}),
    "ubi.ndjson": (lambda: b"".join(written.ubi(PAGES)), {"format": "ubi"}),
    "expedia.csv": (lambda: written.expedia(NUMBERED), {"format": "expedia"}),
    "baidu.feather": (lambda: written.baidu(PAGES), {"format": "baidu-ultr"}),
    "baidu.txt": (lambda: written.baidu_raw(PAGES), {"format": "baidu-ultr-raw"}),
    "hub.parquet": (lambda: written.hub(NUMBERED), {"format": "table"}),
    "auto": (lambda: written.long_csv(PAGES), {"format": "auto"}),
}


@pytest.mark.parametrize("name", list(OTHERS))
def test_a_damaged_table_is_an_error_of_ours_or_every_row_is_accounted_for(tmp_path, name):
    content, options = OTHERS[name]
    rng = random.Random(name)
    whole = content()
    ingested(tmp_path, whole, **options)
    refused = []
    for case in range(cases(25, 20_000)):
        changed = damaged(whole, rng)
        try:
            log = ingested(tmp_path, changed, **options)
        except LogevalError as error:
            refused.append(str(error))
            continue
        except Exception as error:
            raise AssertionError(f"case {case}: {error!r} from {changed!r}") from error
        if len(set(log.manifest["formats"])) == 1:
            assert adds_up(log), f"case {case}: {changed!r}"
    assert not [text for text in refused if "\n" in text]
