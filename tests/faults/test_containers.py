"""Containers number their own processes: whether a writer is alive, only its lock can tell.

A container is played by a process with another name of the machine and another process number.
"""

import os
import platform
import signal
import time
from pathlib import Path

import pytest

from logeval import LogevalError
from logeval.storage import locks, tables
from tests.faults.commands import Command, content

NOBODY = 1 << 30  # no process has this number


def container(call, name=None, pid=NOBODY):
    """The call, in a process whose machine and number are others than they are here."""

    def before():
        os.getpid = lambda: pid
        if name is not None:
            platform.node = lambda: name

    return Command(before=before, call=call)


def write(out, text, wait=lambda: None):
    with tables.staged(out) as staging:
        (staging / "a").write_text(text)
        tables.write_manifest(staging, tables.manifest_of("fit-models", {}, []))
        wait()


def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.parametrize("name", [None, "another"], ids=["same-name", "another-name"])
@pytest.mark.parametrize("exists", [True, False], ids=["over", "new"])
def test_what_a_living_writer_stages_stays(tmp_path, name, exists):
    out, go = tmp_path / "out", tmp_path / "go"
    if exists:
        write(out, "before")
    living = container(lambda: write(out, "from the container", lambda: until(go.exists)), name)
    until(lambda: list(tmp_path.rglob(".out.partial-*/manifest.json")))
    tables.recover(out)
    if exists:
        write(out, "from here")
    go.touch()
    ended = living.wait()
    assert ended.code == 0, ended.said
    assert content(out)["a"] == b"from the container"
    assert set(content(out)) == {"a", "manifest.json", ".logeval"}


@pytest.mark.parametrize("name", [None, "another"], ids=["same-name", "another-name"])
def test_what_a_killed_writer_left_is_rolled_back(tmp_path, name):
    """Its number is that of a process that is alive here."""
    out = tmp_path / "out"
    write(out, "before")
    before = content(out)
    rename = Path.rename

    def killed_when_the_old_file_is_gone():
        def counted(self, target):
            if target == out / "a":
                signal.raise_signal(signal.SIGKILL)
            return rename(self, target)

        Path.rename = counted
        write(out, "half")

    killed = container(killed_when_the_old_file_is_gone, name, pid=os.getpid())
    assert killed.wait().code == -signal.SIGKILL
    assert not (out / "a").exists()
    tables.recover(out)
    assert content(out) == before


def test_the_lock_of_a_killed_container_is_taken_over_and_that_of_a_living_one_is_not(tmp_path):
    go = tmp_path / "go"
    folder = tmp_path / "folder"
    folder.mkdir()

    def hold():
        with locks.holding(folder, "evaluate"):
            until(go.exists)

    living = container(hold, "another")
    until(lambda: (folder / locks.LOCK).exists() and (folder / locks.LOCK).read_text())
    with pytest.raises(LogevalError, match="on another"), locks.holding(folder, "evaluate"):
        pass
    os.kill(living.pid, signal.SIGKILL)
    living.wait()
    assert (folder / locks.LOCK).exists()
    with locks.holding(folder, "evaluate"):
        pass
    assert not list(folder.iterdir())
