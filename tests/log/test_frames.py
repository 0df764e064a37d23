"""Data frames in memory, looks before a log is read, and what is said of a log that looks wrong."""

import gc

import pandas as pd
import polars
import pyarrow as pa
import pytest

import logeval
from logeval.errors import LogevalError
from logeval.log.ingest import Ingest
from tests.faults.commands import logeval as run
from tests.log import written
from tests.log.named import named

PAGES = written.pages(80, seed=3)
FRAME = pd.DataFrame(written.results(PAGES))


def test_a_frame_without_out_is_a_log_for_the_stages_that_follow():
    log = logeval.ingest(FRAME, quiet=True)
    assert "pandas DataFrame: 80 result pages" in repr(log)
    models = logeval.fit_models(log, "PBM", top_queries=2, quiet=True)
    runs = logeval.evaluate(models, policies=["Random"], horizon=20, runs=1, quiet=True)
    assert len(runs.summary())
    assert logeval.replay_estimate(log, "logged", positions=2, quiet=True) is not None
    assert log.describe(3).totals["serps"] == 80
    folder = log.path
    assert folder.exists()
    del log
    gc.collect()
    assert not folder.exists()


def test_a_file_without_out_is_one_too(tmp_path):
    (tmp_path / "a.csv").write_bytes(written.long_csv(PAGES))
    log = logeval.ingest(tmp_path / "a.csv", quiet=True)
    assert repr(log).startswith("Log a.csv: 80 result pages")
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_polars_and_arrow_are_read_as_pandas(tmp_path):
    expected = named(logeval.ingest(FRAME, quiet=True))
    table = pa.Table.from_pandas(FRAME)
    assert named(logeval.ingest(table, quiet=True)) == expected
    assert named(logeval.ingest(table.to_batches(100), quiet=True)) == expected

    frame = polars.DataFrame(written.results(PAGES))
    assert named(logeval.ingest(frame, quiet=True)) == expected
    pages = polars.DataFrame(written.page_rows(PAGES))
    assert named(logeval.ingest(pages, quiet=True)) == expected


def test_the_same_frame_again_does_nothing_and_another_is_refused(tmp_path, capsys):
    logeval.ingest(FRAME, tmp_path / "out")
    capsys.readouterr()
    logeval.ingest(FRAME.copy(), tmp_path / "out")
    assert "up to date" in capsys.readouterr().err
    unused = FRAME.assign(device="desktop")
    assert Ingest(unused, tmp_path / "out").why() is None
    other = FRAME.assign(is_click=1 - FRAME["is_click"])
    assert Ingest(other, tmp_path / "out").why() == "its input has changed"
    with pytest.raises(LogevalError, match="or replace it with overwrite"):
        logeval.ingest(other, tmp_path / "out", quiet=True)
    log = logeval.ingest(other, tmp_path / "out", overwrite=True, quiet=True)
    assert log.counts["clicks_matched"] == int(other["is_click"].sum())


def test_frames_may_be_given_together_but_none_twice():
    first, second = FRAME[:100], FRAME[100:]
    log = logeval.ingest([first, second], quiet=True)
    assert named(log) == named(logeval.ingest(FRAME, quiet=True))
    with pytest.raises(LogevalError, match="a data frame was given twice"):
        logeval.ingest([first, first], quiet=True)


def test_columns_of_several_types_are_text_and_odd_names_are_errors():
    mixed = FRAME.assign(url=[i if i % 2 else f"p{i}" for i in range(len(FRAME))])
    log = logeval.ingest(mixed, quiet=True)
    assert {item for page in named(log) for item in page["items"]} == set(map(str, mixed["url"]))
    with pytest.raises(LogevalError, match="7 is no name for a column"):
        logeval.ingest(FRAME.rename(columns={"device": 7}), quiet=True)
    with pytest.raises(LogevalError, match="has two columns 'url'"):
        logeval.ingest(FRAME.rename(columns={"device": "url"}), format="long", quiet=True)


def test_a_frame_in_the_place_of_a_log_says_what_to_do():
    with pytest.raises(LogevalError, match=r"is not a log; give .*what ingest returns"):
        logeval.fit_models(FRAME, "PBM")
    with pytest.raises(LogevalError, match="logs=5: must be"):
        logeval.ingest(5)


def test_a_look_at_the_first_rows_writes_nothing(tmp_path):
    many = written.pages(2_000)
    (tmp_path / "a.csv").write_bytes(written.long_csv(many))
    end = run("ingest", tmp_path / "a.csv", "--dry-run")
    assert end.code == 0
    assert "rows per result; search = search_id" in end.said
    assert "not used: device" in end.said
    assert "rows read" in end.said
    assert "1,000" in end.said
    assert "https://sho" in end.said
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
    end = run("ingest", tmp_path / "a.csv")
    assert end.code == 2
    assert "--out is missing" in end.said
    log = logeval.ingest(tmp_path / "a.csv", dry_run=True, quiet=True)
    assert log.counts["rows"] == 1_000


def test_a_look_at_a_log_of_lines(tmp_path):
    (tmp_path / "a.tsv").write_bytes(written.yandex(written.pages(3_000, names=False)))
    log = logeval.ingest(tmp_path / "a.tsv", tmp_path / "out", dry_run=True, quiet=True)
    assert log.counts["lines"] <= 1_000 < 3_000
    assert not (tmp_path / "out").exists()


def test_lists_of_lines_are_cut_and_the_clicks_beyond_accounted_for(tmp_path):
    pages = written.pages(300, names=False)
    (tmp_path / "a.tsv").write_bytes(written.yandex(pages))
    whole = logeval.ingest(tmp_path / "a.tsv", quiet=True)
    log = logeval.ingest(tmp_path / "a.tsv", positions=2, quiet=True)
    assert log.serps()["items"].to_pylist() == [page["items"][:2] for page in pages]
    assert log.serps()["clicks"].to_pylist() == [page["clicks"][:2] for page in pages]
    assert log.counts["rows_cut"] == sum(max(len(page["items"]) - 2, 0) for page in pages)
    lost = sum(sum(page["clicks"][2:]) for page in pages)
    assert log.counts["clicks_orphan"] == whole.counts["clicks_orphan"] + lost
    assert log.counts["clicks_matched"] == whole.counts["clicks_matched"] - lost


@pytest.mark.parametrize(
    ("changes", "caution"),
    [
        ({"is_click": 1}, "every result was clicked"),
        ({"search_id": range(len(FRAME)), "position": 1}, "every page has a single result"),
        ({"position": FRAME["position"] * 2}, "of the pages leave positions out"),
        ({"search_id": FRAME["search_term"]}, "is the search the right column"),
        ({"is_click": 0}, "holds no clicks"),
    ],
)
def test_what_looks_like_a_mistake_is_said(changes, caution, capsys):
    logeval.ingest(FRAME.assign(**changes), quiet=True)
    assert f"warning: pandas DataFrame: {caution}" in capsys.readouterr().err or caution in str(
        logeval.ingest(FRAME.assign(**changes), quiet=True).cautions()
    )


def test_a_good_log_has_no_cautions():
    assert logeval.ingest(FRAME, quiet=True).cautions() == []


def test_many_names_do_not_fill_the_memory(tmp_path):
    """The names are in a file; 20 bytes for each place of a table of checksums are not."""
    import subprocess
    import sys

    rows = "".join(f"{i},q{i % 9},https://shop.example/{i:032x},1,0\n" for i in range(300_000))
    (tmp_path / "a.csv").write_text("search_id,query,item,position,clicks\n" + rows)
    code = (
        "import re, sys, logeval; "
        "logeval.ingest(sys.argv[1], sys.argv[2], quiet=True); "
        r"print(int(re.search(r'VmHWM:\s+(\d+)', open('/proc/self/status').read())[1]) // 1024)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "a.csv"), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 700
    assert logeval.load(tmp_path / "out").names.table("item").num_rows == 300_000
