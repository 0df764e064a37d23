"""Killed at any file operation or at any moment, a command run again gives the same output.

``make faults`` takes every operation of every stage; ``make test`` a seeded sample of them.
"""

import os
import random
import shutil
import signal
import sys
import tempfile
import time

import pytest

from logeval import ingest, load
from logeval.errors import LogevalError
from logeval.storage import files, tables
from tests.faults.commands import Command, Ended, logeval
from tests.faults.stages import BY_NAME, LONG, copied, leftovers

OPERATIONS = (
    "open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link",
    "os.symlink", "os.utime", "os.chmod", "shutil.rmtree", "shutil.move", "tempfile.mkstemp",
)  # fmt: skip
SAMPLE = {"raw": 6, "log": 8, "models": 4, "runs": 8}  # of some twenty each
RANDOM = {"raw": 20, "log": 20, "models": 20, "runs": 20, "report": 10, "run": 20}


class KillAt:
    """Counts the operations on files below a folder, and kills the process before one of them."""

    def __init__(self, folder, number):
        self.folder, self.number, self.seen = str(folder), number, 0

    def __call__(self):
        sys.addaudithook(self.heard)

    def heard(self, event, arguments):
        if event not in OPERATIONS or not any(self._below(a) for a in arguments):
            return
        if event == "open" and not (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return
        if self.seen == self.number:
            os.kill(os.getpid(), signal.SIGKILL)
        self.seen += 1

    def _below(self, path):
        return isinstance(path, str | os.PathLike) and str(path).startswith(self.folder)


def operations(stage, given, folder, again):
    """How many file operations the call takes."""
    counter = KillAt(folder, -1)

    def call():
        stage.call(given, folder / stage.name, again)
        print(f"operations={counter.seen}")

    end = logeval(before=counter, call=call)
    assert end.code == 0, end.said
    return int(end.said.rpartition("operations=")[2])


def started(stage, given, folder, again, copy_of):
    """A new folder in which the call can be made: empty, or with the output of the first."""
    folder.mkdir()
    if again:
        copied(copy_of, folder / stage.name)
    return folder / stage.name


@pytest.mark.parametrize("again", [False, True], ids=["new", "over"])
@pytest.mark.parametrize("name", list(BY_NAME))
def test_killed_at_a_file_operation(name, again, given, tmp_path):
    stage = BY_NAME[name]
    first = tmp_path / "first" / name
    first.parent.mkdir()
    stage.call(given, first, False)
    before = stage.read(first)
    reference = started(stage, given, tmp_path / "reference", again, first)
    total = operations(stage, given, reference.parent, again)
    expected = stage.read(reference)
    assert total > 2
    rng = random.Random(f"{name} {again}")
    points = range(total)
    if not LONG:  # the last, when all is done but the tidying up, and some others
        points = [*sorted(rng.sample(range(total - 1), min(total, SAMPLE[name]) - 1)), total - 1]
    for point in points:
        out = started(stage, given, tmp_path / f"{point}", again, first)
        killer = KillAt(out.parent, point)
        end = logeval(before=killer, call=lambda out=out: stage.call(given, out, again))
        assert end.code == -signal.SIGKILL, f"operation {point}: {end}"
        try:
            found = stage.read(out)
        except (LogevalError, OSError):
            found = None
        # a reader gets the old table, the new one, or an error: never anything else
        assert found is None or found in (before, expected), f"operation {point}"
        stage.call(given, out, again)
        assert stage.read(out) == expected, f"operation {point}"
        assert not leftovers(out), f"operation {point}"
        shutil.rmtree(out.parent)
    print(f"{name}: killed at {len(points)} of {total} operations")


@pytest.mark.parametrize("name", list(BY_NAME))
def test_killed_at_any_moment(name, given, tmp_path):
    stage = BY_NAME[name]
    start = time.monotonic()
    stage.call(given, tmp_path / "whole" / name, False)
    seconds = time.monotonic() - start
    expected = stage.read(tmp_path / "whole" / name)
    rng = random.Random(name)
    for case in range(RANDOM[name] if LONG else 2):
        out = tmp_path / f"{case}" / name
        out.parent.mkdir()
        command = Command(call=lambda out=out: stage.call(given, out, False))
        time.sleep(rng.random() * 1.2 * seconds)
        if command.poll() is None:
            os.kill(command.pid, signal.SIGKILL)
        command.wait()
        stage.call(given, out, False)
        assert stage.read(out) == expected
        assert not leftovers(out)


def killed_before_its_commit(given, out, again=True):
    """An ingest whose files are in their place, but not its manifest."""

    def killed(temporary, path):
        signal.raise_signal(signal.SIGKILL)

    def call():
        files.put_in_place = killed
        BY_NAME["log"].call(given, out, again)

    assert Command(call=call).wait().code == -signal.SIGKILL


@pytest.mark.parametrize(
    "read",
    [load, tables.identity, lambda out: logeval("describe", out)],
    ids=["load", "identity", "describe"],
)
def test_readers_see_the_old_table_until_the_commit(read, given, tmp_path):
    out = copied(given / "log", tmp_path / "out")
    before = load(out).serps()
    killed_before_its_commit(given, out)
    found = read(out)
    assert not isinstance(found, Ended) or found.code == 0, found.said
    assert load(out).serps() == before
    tables.recover(out)
    assert load(out).serps() == before
    assert not leftovers(out)


def test_a_first_ingest_that_was_killed_is_not_in_the_way(given, tmp_path):
    """Its files are no table: they go, and the folder is as good as new."""
    killed_before_its_commit(given, tmp_path / "out")
    assert list((tmp_path / "out" / "serps").iterdir())
    log = ingest(given / "raw" / "log.tsv.gz", tmp_path / "out", block_size=9000, quiet=True)
    assert log.serps() == load(given / "log").serps()
    assert {f.name for f in (tmp_path / "out" / "serps").iterdir()} == {f.name for f in log.files}


def test_ingest_refuses_before_the_work(given, tmp_path, monkeypatch):
    """There is another table, or what is in the way is somebody else's."""
    out = copied(given / "log", tmp_path / "out")
    monkeypatch.setattr("logeval.log.ingestion.write_log", None)
    with pytest.raises(LogevalError, match="holds another table already"):
        ingest(given / "raw" / "log.tsv.gz", out, max_bad=0.5)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "rejects.tsv").write_text("mine")
    with pytest.raises(LogevalError, match=r"rejects.tsv: is there already"):
        ingest(given / "raw" / "log.tsv.gz", tmp_path / "mine")


def test_what_duckdb_spilled_before_a_kill_goes_with_the_next_command(given, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    log = load(given / "log")

    def killed():
        with log.connect() as db:
            (spill,) = tmp_path.glob("logeval-*")
            (spill / "spilled").write_text("much")
            assert db.sql("SELECT current_setting('temp_directory')").fetchall() == [(str(spill),)]
            os.kill(os.getpid(), signal.SIGKILL)

    ended = Command(call=killed).wait()
    assert ended.code == -signal.SIGKILL, ended.said
    assert len(list(tmp_path.glob("logeval-*"))) == 1
    with log.connect():
        (spill,) = tmp_path.glob("logeval-*")
        assert not (spill / "spilled").exists()
        assert spill.stat().st_mode & 0o777 == 0o700, "others have no business there"
    assert not list(tmp_path.iterdir())
