"""What a user of ingest relies on: atomic, repeatable, the same for any number of workers."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import logeval
from logeval.synthetic.generate import generate

GOLDEN = Path(__file__).parent.parent / "golden"
RELPRED = GOLDEN / "tiny.relpred.tsv"
PERSONALIZED = GOLDEN / "tiny.personalized.tsv"


def files(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_files_are_the_same_for_any_number_of_workers(tmp_path):
    for workers in (1, 2, 3):
        logeval.ingest(
            PERSONALIZED, tmp_path / str(workers), workers=workers, block_size=5_000, quiet=True
        )
    assert len(files(tmp_path / "1")) > 20
    assert files(tmp_path / "1") == files(tmp_path / "2") == files(tmp_path / "3")


def test_several_files_make_one_table(tmp_path):
    log = logeval.ingest([RELPRED, PERSONALIZED], tmp_path / "out", quiet=True)
    assert log.serps().num_rows == 3600
    assert log.manifest["formats"] == ["yandex-relpred", "yandex-personalized"]
    assert [i["name"] for i in log.manifest["inputs"]] == [RELPRED.name, PERSONALIZED.name]


def test_the_same_again_does_nothing_and_says_so(tmp_path, capsys):
    logeval.ingest(RELPRED, tmp_path / "out")
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*")}
    logeval.ingest(RELPRED, tmp_path / "out")
    assert "up to date" in capsys.readouterr().err
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*")} == before


def test_another_input_is_not_written_over_the_table_unless_asked(tmp_path):
    logeval.ingest(RELPRED, tmp_path / "out", quiet=True)
    before = files(tmp_path / "out")
    for options in ({"max_bad": 0.5}, {"logs": PERSONALIZED}):
        arguments = {"logs": RELPRED, "out": tmp_path / "out", "quiet": True} | options
        with pytest.raises(logeval.LogevalError, match="overwrite=True"):
            logeval.ingest(**arguments)
    assert files(tmp_path / "out") == before
    (tmp_path / "out" / "models").mkdir()
    log = logeval.ingest(PERSONALIZED, tmp_path / "out", overwrite=True, quiet=True)
    assert log.manifest["formats"] == ["yandex-personalized"]
    assert (tmp_path / "out" / "models").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]


def test_a_failed_overwrite_leaves_the_old_table(tmp_path):
    logeval.ingest(RELPRED, tmp_path / "out", quiet=True)
    before = files(tmp_path / "out")
    with pytest.raises(logeval.LogevalError):
        logeval.ingest(
            PERSONALIZED, tmp_path / "out", format="yandex-relpred", overwrite=True, quiet=True
        )
    assert files(tmp_path / "out") == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"logs": "nowhere.tsv"}, "nowhere.tsv: no such file"),
        ({"logs": []}, "no log was given"),
        ({"logs": GOLDEN}, "golden: is a folder"),
        ({"logs": ["-", "-"]}, "only once"),
        ({"logs": RELPRED, "workers": 9}, "workers=9: must be at most 8"),
        ({"logs": RELPRED, "format": "yandex-relprd"}, "did you mean yandex-relpred"),
        ({"logs": __file__}, "is not recognised .* name the format"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, arguments, message):
    with pytest.raises(logeval.LogevalError, match=message):
        logeval.ingest(out=tmp_path / "out", quiet=True, **arguments)
    assert not list(tmp_path.iterdir())


def test_a_session_that_never_ends_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("logeval.log.lines.blocks.MAX_SESSION", 1000)
    source = tmp_path / "log.tsv"
    source.write_text("1\t0\tQ\t5\t0\t11\n" * 500)
    with pytest.raises(logeval.LogevalError, match="a session of over"):
        logeval.ingest(source, tmp_path / "out", block_size=100, quiet=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_ingest_leaves_no_table_and_can_be_run_again(tmp_path, number):
    source = tmp_path / "log.tsv"
    generate(source, sessions=60_000, quiet=True)
    out = tmp_path / "out"
    code = "import sys, logeval; logeval.ingest(sys.argv[1], sys.argv[2], block_size=1 << 16)"
    process = subprocess.Popen([sys.executable, "-c", code, source, out], stderr=subprocess.PIPE)
    while not list(out.glob(".logeval.partial/serps/part-00003.parquet")):
        assert process.poll() is None
        time.sleep(0.002)
    os.kill(process.pid, number)
    process.communicate()
    assert process.returncode != 0
    assert not (out / "manifest.json").exists()
    log = logeval.ingest(source, out, quiet=True)
    assert log.counts["metadata"] == 60_000
    assert {f.name for f in out.iterdir()} == {"manifest.json", "rejects.tsv", "serps"}


@pytest.mark.parametrize("name", ["query_id=7", "day=3", "a[1]", "it's *", "ü b"])
def test_no_character_of_a_path_has_a_meaning(tmp_path, name):
    log = logeval.ingest(RELPRED, tmp_path / name / "log", quiet=True)
    assert log.serps().equals(logeval.ingest(RELPRED, tmp_path / "plain", quiet=True).serps())
    assert log.describe().totals["days"] is None


def test_files_of_others_in_the_folder_are_not_replaced(tmp_path):
    (tmp_path / "out" / "serps").mkdir(parents=True)
    (tmp_path / "out" / "serps" / "mine").write_text("precious")
    with pytest.raises(logeval.LogevalError, match="serps: is there already"):
        logeval.ingest(RELPRED, tmp_path / "out", quiet=True)
    assert files(tmp_path / "out") == {Path("serps/mine"): b"precious"}


def test_a_link_to_a_folder_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    logeval.ingest(RELPRED, tmp_path / "link", quiet=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "manifest.json").exists()


def test_a_failure_while_the_table_is_put_in_place_leaves_the_old_one(tmp_path, monkeypatch):
    logeval.ingest(RELPRED, tmp_path / "out", quiet=True)
    before = files(tmp_path / "out")
    replace = os.replace

    def fail_at_the_manifest(source, target):
        if target == tmp_path / "out" / "manifest.json":
            raise KeyboardInterrupt
        return replace(source, target)

    monkeypatch.setattr(os, "replace", fail_at_the_manifest)
    with pytest.raises(KeyboardInterrupt):
        logeval.ingest(PERSONALIZED, tmp_path / "out", overwrite=True, quiet=True)
    assert files(tmp_path / "out") == before


def test_a_pipe_can_be_ingested(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["sh", "-c", f"cat '{RELPRED}' > '{pipe}'"]):
        log = logeval.ingest(pipe, tmp_path / "out", quiet=True)
    assert log.counts["queries"] == 1800


def test_memory_stays_bounded_when_almost_every_line_is_bad(tmp_path):
    source = tmp_path / "log.tsv"
    source.write_bytes(b"1\t0\tQ\t5\t0\t11\n" + b"\n" * 1_000_000)
    code = (
        "import re, sys, logeval; "
        "logeval.ingest(sys.argv[1], sys.argv[2], format='yandex-relpred', max_bad=1, quiet=True); "
        # not ru_maxrss, which starts with the memory of the process that started this one
        r"print(int(re.search(r'VmHWM:\s+(\d+)', open('/proc/self/status').read())[1]) // 1024)"
    )
    command = [sys.executable, "-c", code, str(source), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1024
    assert logeval.load(tmp_path / "out").counts["rejected"] == 1_000_000


def test_a_session_with_very_many_serps_takes_linear_time(tmp_path):
    n = 30_000
    source = tmp_path / "log.tsv"
    source.write_bytes(b"1\t0\tQ\t5\t0\t11\n" * n + b"1\t3\tC\t9\n" * n + b"1\t4\tC\t11\n")
    log = logeval.ingest(source, tmp_path / "out", quiet=True)
    assert (log.counts["clicks_orphan"], log.counts["clicks_matched"]) == (n, 1)
