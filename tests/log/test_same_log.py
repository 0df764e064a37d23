"""The same log as rows per result, as rows per page and as lines of Yandex: the same table."""

import pytest

import logeval
from tests.log import written

PAGES = written.pages(500, seed=11, names=False)


def common(page):
    """What the lines of Yandex say of a page, by our names."""
    first = next(p for p in PAGES if p["session"] == page["session"])  # its day is the session's
    day = (first["time"] - written.START) // 86_400 + 1
    return {
        "session_id": page["session"], "serp_id": page["serp"], "user_id": first["user"],
        "day": day, "time": page["serp"] * 100, "query_id": page["query"],
    }  # fmt: skip


def results():
    rows = []
    for page in PAGES:
        for k, (item, clicks) in enumerate(zip(page["items"], page["clicks"], strict=True)):
            when = page["serp"] * 100 + 7 if clicks else ""
            own = {"item_id": item, "domain": item // 10, "position": k + 1, "clicks": clicks}
            rows.append(common(page) | own | {"click_time": when})
    return written.csv_of(rows)


def pages():
    rows = []
    for page in PAGES:
        times = [page["serp"] * 100 + 7 if clicks else None for clicks in page["clicks"]]
        own = {"items": page["items"], "domains": [item // 10 for item in page["items"]]}
        rows.append(common(page) | own | {"clicks": page["clicks"], "click_times": times})
    return written.parquet_of(rows)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("same")
    found = {}
    for name, content in {
        "long": results(), "table": pages(), "yandex-personalized": written.yandex(PAGES),
    }.items():  # fmt: skip
        (folder / name).write_bytes(content)
        log = logeval.ingest(folder / name, folder / f"{name}.out", quiet=True)
        assert log.manifest["formats"] == [name]
        found[name] = log.serps()
    return found


@pytest.mark.parametrize("name", ["long", "table"])
def test_the_serps_are_the_same_row_for_row(tables, name):
    yandex, ours = tables["yandex-personalized"], tables[name]
    assert yandex.num_rows == len(PAGES)
    for column in yandex.column_names:
        assert ours[column].to_pylist() == yandex[column].to_pylist(), column
