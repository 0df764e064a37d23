"""Names and numbers that nobody means: one line and exit code 2, and nothing obeys them."""

import json
import os
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import logeval as le
from logeval.commands.show import print_for_programs, print_frame
from logeval.errors import LogevalError
from logeval.log import rejects
from logeval.running import console
from logeval.storage import tables
from logeval.synthetic.generate import generate
from tests.faults.commands import content, logeval

ESCAPE = "a\x1b[31m\tb.tsv"
NOT_UTF8 = os.fsdecode(b"a\xffb.tsv")


@pytest.fixture
def raw(tmp_path):
    generate(tmp_path / "log.tsv", sessions=30, queries=2, quiet=True)
    return tmp_path / "log.tsv"


def clear(ended):
    """The error, which is one line."""
    assert ended.code == 2, ended.said
    assert ended.is_clear(), ended.said
    assert "\x1b" not in ended.said
    return ended.said.rstrip("\n").rpartition("\n")[2]


def test_control_characters_in_names_do_not_reach_the_terminal(raw, tmp_path):
    strange = raw.rename(tmp_path / ESCAPE)
    ended = logeval("ingest", strange, "--out", tmp_path / "out")
    assert ended.code == 0, ended.said
    assert r"a\x1b[31m\tb.tsv: reading" in ended.said
    assert "\x1b" not in ended.said
    strange.write_text("no record\n" * 5)
    ended = logeval("ingest", strange, "--format", "yandex-relpred", "--out", tmp_path / "bad")
    assert r"a\x1b[31m\tb.tsv: 5 of 5 lines" in clear(ended)
    assert r"a\x1b[31m\tb.tsv: no such file" in clear(
        logeval("ingest", tmp_path / "no" / ESCAPE, "--out", tmp_path / "bad")
    )
    le.ingest(strange, tmp_path / "all", format="yandex-relpred", max_bad=1.0, quiet=True)
    rows = (tmp_path / "all" / "rejects.tsv").read_text().splitlines()
    assert len(rows) == 6
    assert {row.count("\t") for row in rows} == {3}


def test_no_command_prints_control_characters_of_a_name(raw, tmp_path):
    folder, shown = tmp_path / "a\x1b[31m\x9bb", r"a\x1b[31m\x9bb"
    log, models, runs = folder / "log", folder / "models", folder / "runs"
    evaluate = ("--policy", "Random", "--horizon", 5, "--runs", 2, "--out", runs)
    for command in (
        ("generate", folder / "log.tsv", "--sessions", 200, "--queries", 2),
        ("ingest", folder / "log.tsv", "--out", log),
        ("describe", log, "--figure", folder / "log.png"),
        ("fit-models", log, "-m", "DCM", "--out", models),
        ("compare-models", log, "-m", "DCM", "--out", folder / "quality"),
        ("check-models", models, log, "--simulations", 80, "--figures", folder / "figures"),
        ("evaluate", models, *evaluate),
        ("report", runs, "--out", folder / "report"),
        ("inspect", models),
        ("plot", models, "--out", folder / "models.png"),
    ):
        ended = logeval(*command)
        assert ended.code == 0, ended.said
        assert not set(ended.said) & {"\x1b", "\x9b"}, command
        assert shown in ended.said or command[0] in ("models", "check-models"), ended.said
    query = le.read_models(models).queries[0]
    ended = logeval("inspect", models, "--query", query)
    assert ended.code == 0, ended.said
    assert "\x1b" not in ended.said
    for command in (("inspect", models, "--query", "1\x1b[31m"), ("describe", log, "--\x1b[31m")):
        ended = logeval(*command)
        assert ended.code == 2, ended.said
        assert "\x1b" not in ended.said


def test_tables_for_people_show_control_characters_and_those_for_programs_have_them():
    """The name of a policy, in a table that somebody else made."""
    frame = pd.DataFrame({"policy": ["a\x1b[31mb", "plain"], "track": ["ranking", "ranking"]})

    def printed(as_csv):
        console.guard()
        if not print_for_programs(frame, False, as_csv):
            print_frame("Policies", frame)

    lines = logeval(call=lambda: printed(False)).said.splitlines()
    assert lines[2:4] == ["a\\x1b[31mb  ranking", "plain       ranking"]
    assert "a\x1b[31mb,ranking\n" in logeval(call=lambda: printed(True)).said


def test_a_name_that_is_not_utf8(raw, tmp_path):
    for command in (
        ("generate", tmp_path / NOT_UTF8, "--sessions", 9),
        ("ingest", raw, "--out", tmp_path / NOT_UTF8),
        ("describe", tmp_path / NOT_UTF8),
    ):
        assert r"a\udcffb.tsv: the name is not UTF-8" in clear(logeval(*command))
    log = le.ingest(raw.rename(tmp_path / NOT_UTF8), tmp_path / "out", quiet=True)
    table = tmp_path / f"{NOT_UTF8}.parquet"
    table.write_bytes(log.files[0].read_bytes())
    ended = logeval("ingest", table, "--out", tmp_path / "table")
    assert ended.code == 0, ended.said
    assert r"a\udcffb.tsv.parquet: reading" in ended.said


def test_a_log_in_a_notebook_is_escaped(raw, tmp_path):
    log = le.ingest(raw, tmp_path / "out", quiet=True)
    forged = {"<script>alert(1)</script>": 1, "rows": "<script>alert(2)</script>"}
    shown = le.log.log.Log(Path("<b>"), log.manifest | {"counts": forged})._repr_html_()
    assert "<script>" not in shown
    assert "<b>" not in shown
    assert "&lt;script&gt;" in shown


@pytest.mark.parametrize("name", ["/", "/etc/passwd", "../log.tsv", "", ".", "a/../..", "\0"])
def test_a_forged_manifest_lists_nothing_outside_its_folder(name, raw, tmp_path, monkeypatch):
    out, rglob, before = tmp_path / "out", Path.rglob, raw.read_bytes()
    le.ingest(raw, out, quiet=True)
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["files"][name] = {"bytes": 1, "crc32": "00000000"}
    manifest["checksum"] = tables._own_checksum(manifest)
    (out / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(LogevalError, match="not a manifest as logeval wrote it"):
        tables.read_manifest(out)

    def only_below(self, pattern):
        assert out in self.resolve().parents, self
        return rglob(self, pattern)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rglob", only_below)
        with pytest.raises(LogevalError, match="not a manifest as logeval wrote it"):
            le.ingest(raw, out, overwrite=True, quiet=True)
    assert raw.read_bytes() == before


def test_standard_input_that_is_closed(raw, tmp_path):
    def closed():
        import sys

        sys.stdin = None

    ended = logeval("ingest", "-", "--out", tmp_path / "out", before=closed)
    assert clear(ended) == "logeval: standard input: is closed; give it a log, or name a file"
    ended = logeval("ingest", raw, "--out", tmp_path / "out", before=closed)
    assert ended.code == 0, ended.said


def test_a_parquet_file_with_a_column_twice(tmp_path):
    rows = [pa.array([1]), pa.array([[1, 2]]), pa.array([[0, 1]]), pa.array([2])]
    table = pa.Table.from_arrays(rows, names=["query_id", "items", "clicks", "query_id"])
    pq.write_table(table, tmp_path / "t.parquet")
    ended = logeval("ingest", tmp_path / "t.parquet", "--out", tmp_path / "out")
    assert "t.parquet: has two columns 'query_id'; rename one of them" in clear(ended)
    assert set(content(tmp_path)) == {"t.parquet"}


@pytest.mark.parametrize("name", ["sessions", "queries", "users", "factors"])
def test_numbers_that_nobody_means(tmp_path, name):
    ended = logeval("generate", tmp_path / "log.tsv", f"--{name}", 1 << 70)
    said = clear(ended)
    assert f"'--{name}': Input should be less than or equal to 10000000000" in said
    assert not list(tmp_path.iterdir())


def test_a_log_without_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "is not the name of a file" in clear(logeval("generate", ""))


def test_very_many_lines_without_a_record_are_no_log(tmp_path, monkeypatch):
    """A gigabyte of newlines took hours, and --max-bad 1 allowed every one of them."""
    monkeypatch.setattr(rejects, "CHECK_BAD_AFTER", 1000)
    log = tmp_path / "log.tsv"
    log.write_text("\n" * 5000)
    asked = {"format": "yandex-relpred", "max_bad": 1.0, "block_size": 2000, "quiet": True}
    with pytest.raises(LogevalError, match=r"none of the first 2,\d+ lines is a record"):
        le.ingest(log, tmp_path / "out", **asked)
    assert content(tmp_path) == {"log.tsv": b"\n" * 5000}
