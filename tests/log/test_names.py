"""Names: found by id and by name, shortened, kept beside other tables, safe from damage."""

import pandas as pd
import pyarrow as pa
import pytest

import logeval
from logeval.errors import LogevalError
from logeval.log.names import Names, shortened
from logeval.storage import tables
from logeval.storage.schemas import NAMES
from logeval.storage.tables import path_of
from tests.log import written

PAGES = written.pages(40)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("names") / "log"
    return logeval.ingest(pd.DataFrame(written.results(PAGES)), folder, quiet=True)


def test_names_and_ids_are_found_by_each_other(log):
    for kind, names in (
        ("query", {page["query"] for page in PAGES}),
        ("item", {item for page in PAGES for item in page["items"]}),
        ("user", {page["user"] for page in PAGES}),
    ):
        ids = [log.names.id_of(kind, name) for name in names]
        assert sorted(ids) == list(range(len(names)))
        assert log.names.names_of(kind, ids) == list(names)
        assert set(log.names.table(kind)["name"].to_pylist()) == names
    assert log.names.id_of("query", "never asked") is None
    assert log.names.name_of("item", 10**6) == "1000000"
    assert log.names.names_of("item", []) == []


def test_numbers_are_named_by_their_digits(tmp_path):
    log = logeval.ingest(
        pd.DataFrame(written.results(written.pages(5, names=False))), tmp_path / "log", quiet=True
    )
    assert log.names.kinds == []
    assert log.names.name_of("item", 107) == "107"
    assert log.names.id_of("item", "107") == 107
    assert log.names.id_of("item", "x") is None
    assert log.names.table("item").num_rows == 0
    assert Names().name_of("query", 5) == "5"


def test_a_stage_may_keep_the_names_it_needs(log, tmp_path):
    kept = {"item": [3, 1, 3], "query": [0], "domain": [5]}
    (tmp_path / "models").mkdir()
    log.names.only(kept).write(tmp_path / "models")
    tables.write_manifest(tmp_path / "models", tables.manifest_of("models", {}, []))
    names = Names(tmp_path / "models")
    assert names.kinds == ["query", "item"]
    assert names.table("item")["id"].to_pylist() == [1, 3]
    assert names.name_of("item", 3) == log.names.name_of("item", 3)
    assert names.name_of("item", 2) == "2"


def test_damaged_names_are_not_believed(tmp_path):
    log = logeval.ingest(pd.DataFrame(written.results(PAGES)), tmp_path / "log", quiet=True)
    file = path_of(tmp_path / "log", "names/item")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(LogevalError, match=r"item-.*parquet: is damaged"):
        log.names.name_of("item", 0)


@pytest.mark.parametrize(
    ("name", "width", "short"),
    [
        ("short", 10, "short"),
        ("https://www.example.com/shoes/running/42", 20, "https://ww…unning/42"),
        ("abcdef", 5, "ab…ef"),
        ("abcdef", 4, "ab…f"),
        ("abcdef", 1, "…"),
        ("a\nb", 10, "a\\nb"),
        ("exactly ten", 11, "exactly ten"),
    ],
)
def test_names_are_shortened_in_the_middle(name, width, short):
    assert shortened(name, width) == short
    assert len(short) <= width


def test_the_table_of_names_has_its_schema(log):
    assert log.names.table("item").schema.names == NAMES.names
    assert log.names.table("item").schema.field("id").type == pa.int64()
