"""Tables that people bring: Parquet or CSV in the SERP schema, checked cell by cell."""

import gzip
import hashlib
import os
import random
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import logeval
from logeval.errors import LogevalError
from logeval.log import ingestion
from logeval.log.ingest import Ingest
from logeval.log.reading.source import Source
from logeval.log.tables import text as text_files
from logeval.log.tables.files import TableFile
from logeval.log.tables.frame import open_table
from logeval.storage.tables import SERPS
from tests.log.helpers import batches

GOLDEN = Path(__file__).parents[2] / "golden"


def write(tmp_path, text):
    path = tmp_path / "serps.csv"
    path.write_text(text)
    return path


def test_a_written_table_reads_back_the_same(tmp_path):
    log = logeval.ingest(GOLDEN / "tiny.personalized.tsv", tmp_path / "log", quiet=True)
    pq.write_table(log.serps(), tmp_path / "serps.parquet")
    again = logeval.ingest(tmp_path / "serps.parquet", tmp_path / "again", quiet=True)
    assert again.serps().equals(log.serps())
    assert again.counts["rows"] == 1800
    for name in ("clicks_matched", "clicks_repeat", "queries"):
        assert again.counts[name] == log.counts[name]


def test_csv_needs_only_query_items_and_clicks(tmp_path):
    path = write(tmp_path, "query_id,items,clicks\n5,11 12,0 1\n6,13,2\n")
    log = logeval.ingest(path, tmp_path / "out", quiet=True)
    table = log.serps()
    assert table.schema.equals(SERPS)
    assert table.select(["session_id", "time", "query_id", "items", "clicks"]).to_pylist() == [
        {"session_id": 0, "time": 0, "query_id": 5, "items": [11, 12], "clicks": [0, 1]},
        {"session_id": 1, "time": 0, "query_id": 6, "items": [13], "clicks": [2]},
    ]
    assert table["click_times"].to_pylist() == [[None, None], [None]]
    assert table["propensities"].to_pylist() == [None, None]
    assert table["domains"].to_pylist() == [None, None]


def test_columns_can_be_mapped(tmp_path):
    path = write(tmp_path, "qid,urls,c,when\n5,11 12,0 1,- 7\n")
    columns = {"query_id": "qid", "items": "urls", "clicks": "c", "click_times": "when"}
    log = logeval.ingest(path, tmp_path / "out", format="table", columns=columns, quiet=True)
    assert log.serps()["items"].to_pylist() == [[11, 12]]
    assert log.serps()["click_times"].to_pylist() == [[None, 7]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query_id,items\n5,11\n", "no column for clicks.*--map clicks=COLUMN"),
        ("query_id,items,clicks\n5,11,0\n,12,0\n", "row 2: query is empty"),
        ("query_id,items,clicks\n5,11,0\n5,11 12,0\n", "row 2: clicks: not one value per item"),
        ("query_id,items,clicks\n5,11,-1\n", "row 1: clicks are no whole number from 0 on"),
        ("query_id,items,clicks\n5,,\n", "row 1: item is empty"),
        ("query_id,items,clicks\n5,11 -,0 0\n", "row 1: item is empty"),
        ("query_id,items,clicks,test\n5,11,0,maybe\n5,1,0,1\n", "row 1: test is neither true"),
        ("query_id,items,clicks\n", "has no rows"),
        (
            "query_id,items,clicks\n5,11,99999999999\n",
            "row 1: clicks are no whole number from 0 on",
        ),
        ("query_id,items,clicks\n5,11,1_0\n", "row 1: clicks are no whole number from 0 on"),
        ("query_id,items,clicks,clicks\n5,11,0,0\n", "has two columns 'clicks'"),
        ("query_id,items,clicks,click_times\n5,11,0,3\n", "row 1: a time without a click"),
        ("query_id,items,clicks,propensities\n5,11 12,0 1,0.5 0\n", "row 1: propensity is not ab"),
        ("query_id,items,clicks,propensities\n5,11 12,0 1,0.5\n", "row 1: propensity: not one"),
        ("query_id,items,clicks,propensities\n5,11,0,x\n", "row 1: propensity is not above"),
        ("query_id,items,clicks\n5,11\n", "row 1: 2 fields, not 3"),
    ],
)
def test_a_wrong_cell_is_named_by_row(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(logeval.LogevalError, match=message):
        logeval.ingest(path, tmp_path / "out", format="table", quiet=True)
    assert [p.name for p in tmp_path.iterdir()] == ["serps.csv"]


def test_the_row_of_an_error_counts_over_batches(tmp_path):
    rows = 70_000
    clicks = [[0]] * (rows - 1) + [[0, 1]]
    table = pa.table({"query_id": [1] * rows, "items": [[7]] * rows, "clicks": clicks})
    pq.write_table(table, tmp_path / "serps.parquet")
    with pytest.raises(logeval.LogevalError, match="row 70000: clicks: not one value"):
        logeval.ingest(tmp_path / "serps.parquet", tmp_path / "out", max_bad=0, quiet=True)


def test_an_unknown_column_in_the_map_is_named(tmp_path):
    path = write(tmp_path, "query_id,items,clicks\n5,11,0\n")
    with pytest.raises(logeval.LogevalError, match="did you mean query"):
        logeval.ingest(path, tmp_path / "out", format="table", columns={"queri": "qid"}, quiet=True)
    with pytest.raises(logeval.LogevalError, match="there is no column 'qid'"):
        logeval.ingest(path, tmp_path / "out", columns={"query": "qid"}, quiet=True)


def test_csv_as_spreadsheets_write_it(tmp_path):
    path = tmp_path / "serps.csv"
    path.write_bytes(b'\xef\xbb\xbfitems,query_id,clicks\r\n"11",5,0\r\n"13 14",6,"2 0"\r\n')
    log = logeval.ingest(path, tmp_path / "out", quiet=True)
    assert log.serps()["items"].to_pylist() == [[11], [13, 14]]


def test_empty_lines_before_the_names_of_columns(tmp_path):
    """Arrow passes over them; so must the look at the names (found by damaged tables)."""
    path = write(tmp_path, "\n\nquery_id,items,clicks,query_id\n5,11,0,5\n")
    with pytest.raises(LogevalError, match="two columns 'query_id'"):
        batches(path)
    path.write_bytes(b"\nquery_id,items,clicks,da\xf9\n5,11,0,1\n")
    with pytest.raises(LogevalError, match="not UTF-8"):
        batches(path)
    path.write_text('"que\nry",items,clicks\n5,11,0\n')
    (found,) = batches(path)
    assert found["query_id"].to_pylist() == [5]
    path.write_text('"qui\nry",items,clicks\n5,11,0\n')
    with pytest.raises(LogevalError, match=r"it has 'qui\\nry', items") as raised:
        batches(path)
    assert "\n" not in str(raised.value)
    (found,) = batches(write(tmp_path, "\nquery_id,items,clicks\n5,11,0\n"))
    assert found["items"].to_pylist() == [[11]]


def test_a_compressed_csv_is_recognised_by_its_bytes(tmp_path):
    path = tmp_path / "serps.csv"
    path.write_bytes(gzip.compress(b"query_id,items,clicks\n5,11,0\n"))
    assert logeval.ingest(path, tmp_path / "out", quiet=True).counts["rows"] == 1


def test_parquet_types_of_other_writers_are_taken(tmp_path):
    table = pa.table(
        {
            "query_id": pa.array([5, 5], pa.uint32()).dictionary_encode(),
            "items": pa.array([[1, 2], [3]], pa.large_list(pa.int32())),
            "clicks": pa.array(["0 1", "2"]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "serps.parquet")
    log = logeval.ingest(tmp_path / "serps.parquet", tmp_path / "out", quiet=True)
    assert log.serps()["clicks"].to_pylist() == [[0, 1], [2]]


def test_sessions_are_numbered_through_over_files(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("query_id,items,clicks\n5,11,0\n5,12,0\n")
    log = logeval.ingest([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "out", quiet=True)
    assert log.serps()["session_id"].to_pylist() == [0, 1, 2, 3]


def test_a_map_means_a_table_and_is_refused_for_logs(tmp_path):
    path = write(tmp_path, "qid,urls,c\n5,11 12,0 1\n")
    columns = {"query_id": "qid", "items": "urls", "clicks": "c"}
    assert logeval.ingest(path, tmp_path / "out", columns=columns, quiet=True).counts["rows"] == 1
    with pytest.raises(logeval.LogevalError, match="a column map is for tables"):
        logeval.ingest(path, tmp_path / "x", format="yandex-relpred", columns=columns)


def test_tables_and_logs_are_not_mixed(tmp_path):
    path = write(tmp_path, "query_id,items,clicks\n5,11,0\n")
    with pytest.raises(logeval.LogevalError, match="cannot be ingested together"):
        logeval.ingest([GOLDEN / "tiny.relpred.tsv", path], tmp_path / "out", quiet=True)
    assert [p.name for p in tmp_path.iterdir()] == ["serps.csv"]


def test_logged_propensities_are_kept(tmp_path):
    (tmp_path / "a.csv").write_text("query_id,items,clicks,p\n5,11 12,0 1,0.25 1\n6,3,1,\n")
    log = logeval.ingest(
        tmp_path / "a.csv", tmp_path / "a", format="table", columns={"propensities": "p"},
        quiet=True,
    )  # fmt: skip
    assert log.serps()["propensities"].to_pylist() == [[0.25, 1.0], None]


TABLE = b"query_id,items,clicks\n5,11 12,0 1\n6,13,2\n"
OTHER = b"query_id,items,clicks\n5,11 12,1 1\n6,13,0\n"


def as_parquet(text):
    sink = pa.BufferOutputStream()
    pq.write_table(pacsv.read_csv(pa.BufferReader(text)), sink)
    return sink.getvalue().to_pybytes()


WRITERS = {"csv": bytes, "csv.gz": gzip.compress, "parquet": as_parquet}


@pytest.mark.parametrize("kind", list(WRITERS))
def test_another_table_under_the_path_is_neither_read_nor_vouched_for(tmp_path, monkeypatch, kind):
    """It was read, and the checksum was that of the first, which is back by the end."""
    path, other = tmp_path / "table", tmp_path / "other"
    path.write_bytes(WRITERS[kind](TABLE))
    other.write_bytes(WRITERS[kind](OTHER))
    plain = TableFile.batches

    def another_meanwhile(*arguments, **options):
        path.rename(tmp_path / "aside")
        other.rename(path)
        yield from plain(*arguments, **options)
        (tmp_path / "aside").rename(path)

    monkeypatch.setattr(TableFile, "batches", another_meanwhile)
    log = logeval.ingest(path, tmp_path / "out", quiet=True)
    assert log.serps()["clicks"].to_pylist() == [[0, 1], [2]]
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    size = path.stat().st_size
    assert log.manifest["inputs"] == [{"name": "table", "bytes": size, "sha256": sha256}]


@pytest.mark.parametrize("kind", list(WRITERS))
@pytest.mark.parametrize("replaced", [True, False], ids=["replaced", "written"])
def test_a_table_that_changes_while_it_is_read(tmp_path, monkeypatch, replaced, kind):
    """One that is replaced is read to its end, and vouched for; one that is written is not."""
    path, plain = tmp_path / "table", TableFile.batches
    path.write_bytes(WRITERS[kind](TABLE))
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()

    def changed_afterwards(*arguments, **options):
        yield from plain(*arguments, **options)
        other = path.with_name("other") if replaced else path
        other.write_bytes(WRITERS[kind](OTHER + b"7,11 12,1 0\n"))
        other.rename(path)

    monkeypatch.setattr(TableFile, "batches", changed_afterwards)
    if replaced:
        log = logeval.ingest(path, tmp_path / "out", quiet=True)
        assert log.serps()["clicks"].to_pylist() == [[0, 1], [2]]
        assert log.manifest["inputs"][0]["sha256"] == sha256
        return
    with pytest.raises(LogevalError, match="replaced while it was read; run the command again"):
        logeval.ingest(path, tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()


def test_a_table_in_blocks_is_the_whole_table(tmp_path, monkeypatch):
    """Blocks are cut where Arrow ends a record, whatever is quoted."""
    rng = random.Random(1)
    odd = ['"a\nb"', '"a""\r\n"",b"', '5" disk', '"x"y', "", '""', "plain", '"a\rb"']
    for _ in range(60):
        end = rng.choice(["\n", "\r\n", "\r"])
        rows = [f"{i},{rng.choice(odd)},{i} 7,0 1" for i in range(rng.choice([1, 30, 200]))]
        text = end.join(["query_id,note,items,clicks", *rows]) + rng.choice(["", end, end * 60])
        path = tmp_path / "table.csv"
        path.write_bytes(text.encode())
        monkeypatch.setattr(text_files, "BLOCK", 1 << 20)
        (whole,) = blocks(path)
        monkeypatch.setattr(text_files, "BLOCK", rng.choice([7, 50, 333]))
        assert pa.concat_tables(blocks(path)).equals(whole)
        assert len(whole) == len(rows)


def blocks(path):
    """All columns of a table, block by block; every row of a block has its number."""
    with closing(Source(path)) as source:
        table = open_table(source)
        found = [read() for read in table.batches(table.names)]
    for batch in found:
        assert batch.numbers.tolist() == list(range(batch.rows))
    return [pa.table(dict(batch.columns)) for batch in found]


def test_a_quote_that_is_never_closed_does_not_fill_the_memory(tmp_path):
    path = write(tmp_path, 'query_id,items,clicks\n5,"11,0\n' + "5,11,0\n" * 700_000)
    with pytest.raises(LogevalError, match="line 2: a quote is opened"):
        batches(path)


def test_another_table_when_it_is_opened_is_known_to_be_another(tmp_path, monkeypatch):
    """Size and time were those of the first, so that it passed for the one that was read."""
    path, other = write(tmp_path, TABLE.decode()), tmp_path / "other.csv"
    other.write_bytes(OTHER)
    os.utime(other, (0, 0))
    plain = ingestion.Source

    def another_meanwhile(*arguments):
        path.rename(tmp_path / "aside")
        other.rename(path)
        source = plain(*arguments)
        (tmp_path / "aside").rename(path)
        return source

    monkeypatch.setattr(ingestion, "Source", another_meanwhile)
    logeval.ingest(path, tmp_path / "out", quiet=True)
    assert Ingest(path, tmp_path / "out").why() == "its input has changed"
