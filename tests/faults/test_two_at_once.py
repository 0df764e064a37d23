"""Two commands on one folder at the same time: one waits or is told, and nothing is lost."""

import os
import subprocess
import sys

import pytest

import logeval
from logeval import LogevalError
from logeval.evaluation.store import Store, keys_of
from logeval.storage import files, tables
from tests.faults.commands import Command, content

PROBLEM = "B_LB(L=6,K=2,p=0.5,gap=0.4)"
STEPS = 20_000  # so many that two of them meet


def evaluate(out, policy, runs=40):
    settings = {"problem": PROBLEM, "horizon": STEPS, "runs": runs, "quiet": True}
    return Command(call=lambda: logeval.evaluate(**settings, policies=[policy], out=out))


def test_two_evaluates_at_once_lose_nothing(tmp_path):
    """Before there was a lock, 11 of 12 such pairs lost rows or a whole policy."""
    refused = 0
    for attempt in range(4):
        out = tmp_path / f"{attempt}"
        pair = {policy: evaluate(out, policy) for policy in ("Random", "Oracle")}
        ended = {policy: command.wait() for policy, command in pair.items()}
        for policy, end in ended.items():
            assert end.is_clear(), end.said
            if end.code:
                refused += 1
                assert "is at work here; wait until it ends" in end.said
                assert evaluate(out, policy).wait().code == 0
        manifest, table = tables.read_manifest(out), logeval.Runs.load(out).to_pandas()
        last = table[table["t"] == STEPS].groupby("policy").size()
        assert last.to_dict() == {"Random": 40, "Oracle": 40}
        left = [p.name for p in out.iterdir() if p.name not in manifest["files"]]
        assert left == ["manifest.json"]
    assert refused, "they never met"


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path):
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom logeval.storage import files\n"
        "with files.holding(Path(sys.argv[1]), 'evaluate'):\n    os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert "evaluate (process" in (tmp_path / files.LOCK).read_text()
    with files.holding(tmp_path, "evaluate"):
        message = rf"evaluate \(process {os.getpid()}\) is at work here; wait"
        with pytest.raises(LogevalError, match=message), files.holding(tmp_path, "report", 0.1):
            pass
    assert not list(tmp_path.iterdir())


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / files.LOCK).symlink_to(precious)
    with pytest.raises(OSError, match="symbolic link"), files.holding(tmp_path, "evaluate"):
        pass
    assert precious.read_text() == "precious"


def test_runs_that_go_missing_are_an_error(tmp_path, monkeypatch):
    """Somebody deletes units while the others are computed."""

    def losing(self, rows):
        if len(keys_of(rows)) != 1:
            add(self, rows)

    add = Store.add
    monkeypatch.setattr(Store, "add", losing)
    settings = {"problem": PROBLEM, "policies": ["Random"], "horizon": 5, "quiet": True}
    with pytest.raises(LogevalError, match="1 of 33 runs are missing"):
        logeval.evaluate(**settings, runs=33, out=tmp_path / "out")


def test_the_summary_says_which_replicas_are_missing(tmp_path):
    settings = {"problem": PROBLEM, "horizon": 5, "quiet": True, "out": tmp_path / "out"}
    logeval.evaluate(**settings, policies=["Random"], runs=5)
    logeval.evaluate(**settings, policies=["Oracle"], runs=3)
    runs = logeval.Runs.load(tmp_path / "out")
    summary = runs.summary()
    assert dict(zip(summary["policy"], summary["missing"], strict=True)) == {
        "Random": 0,
        "Oracle": 2,
    }
    assert set(summary["replicas"]) == {3}


def test_a_table_that_is_replaced_while_it_is_read_is_not_called_damaged(tmp_path, monkeypatch):
    settings = {"problem": PROBLEM, "policies": ["Random"], "horizon": 5, "quiet": True}
    logeval.evaluate(**settings, runs=1, out=tmp_path)
    check, calls = tables.table_of, []

    def replaced_before(*arguments):
        if not calls:
            calls.append(1)
            logeval.evaluate(**settings, runs=2, out=tmp_path)
        return check(*arguments)

    monkeypatch.setattr(tables, "table_of", replaced_before)
    assert tables.read_table(tmp_path, "runs")["run"].to_pylist()[-1] == 1


def test_two_writers_of_one_folder(tmp_path):
    """Whoever comes last wins, whole; the other is there before, or is told."""

    def write(text):
        with tables.staged(tmp_path / "out") as staging:
            for name in ("a", "b", "c"):
                (staging / name).write_text(text)
            tables.write_manifest(staging, tables.manifest_of("fit-models", {}, []))

    write("before")
    for _ in range(10):
        pids = []
        for text in ("one", "two"):
            pids.append(os.fork())
            if pids[-1] == 0:
                try:
                    write(text)
                    os._exit(0)
                finally:
                    os._exit(1)
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        assert codes == [0, 0]
        found = content(tmp_path / "out")
        assert set(found) == {"a", "b", "c", "manifest.json"}
        assert found["a"] == found["b"] == found["c"] != b"before"
        tables.check_files(tmp_path / "out", tables.read_manifest(tmp_path / "out"))
