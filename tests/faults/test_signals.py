"""Commands that are told to stop, or killed: they stop, and so do their workers."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.faults.commands import Command, logeval

LONG = [
    "evaluate", "--problem", "B_LB(L=6,K=2,p=0.5,gap=0.4)", "--policy", "Random", "--horizon",
    10**7, "--runs", 64, "--quiet",
]  # fmt: skip


def children(pid):
    """The processes that a process started, without the tracker of shared memory."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    lines = [(c, Path(f"/proc/{c}/cmdline").read_text()) for c in found]
    return [int(c) for c, line in lines if "spawn_main" in line]


def busy(pids, seconds):
    """Whether the processes have computed for so long: they are past their imports."""
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return all(int(stat[11]) > seconds * os.sysconf("SC_CLK_TCK") for stat in stats)


def start(workers, out):
    """A long evaluation whose workers are in the middle of their units."""
    command = Command(*LONG, "--workers", workers, "--out", out)
    while command.poll() is None:
        pids, seconds = (children(command.pid), 1.5) if workers > 1 else ([command.pid], 0.3)
        if (out / "manifest.json").exists() and len(pids) == workers and busy(pids, seconds):
            return command
        time.sleep(0.02)
    raise AssertionError(command.said())


@pytest.mark.parametrize(("name", "workers"), [("SIGINT", 2), ("SIGTERM", 1), ("SIGHUP", 1)])
def test_told_to_stop_it_stops(tmp_path, name, workers):
    signum = getattr(signal, name)
    command = start(workers, tmp_path / "out")
    if name == "SIGINT":
        os.killpg(command.pid, signum)  # as a terminal does
    else:
        os.kill(command.pid, signum)
    end = command.wait(60)
    assert end.code == 128 + signum, end.said
    assert end.is_clear(), end.said
    assert end.said.strip() == "logeval: stopped; nothing is left half-written"
    assert command.group_is_empty(30)
    assert not [p for p in (tmp_path / "out").rglob("*") if ".partial" in p.name]
    assert not (tmp_path / "out" / ".lock").exists()


def test_told_twice_it_does_not_wait(tmp_path):
    command = start(2, tmp_path / "out")
    for _ in range(2):
        os.killpg(command.pid, signal.SIGINT)
        time.sleep(0.01)
    end = command.wait(60)
    assert end.code == 130
    assert end.is_clear(), end.said
    assert command.group_is_empty(30)


def test_killed_its_workers_end_too_and_the_next_one_goes_on(tmp_path):
    command = start(2, tmp_path / "out")
    os.kill(command.pid, signal.SIGKILL)
    assert command.wait().code == -signal.SIGKILL
    assert command.group_is_empty(30)


def test_a_killed_worker_is_an_error_with_a_remedy(tmp_path):
    command = start(2, tmp_path / "out")
    os.kill(children(command.pid)[0], signal.SIGKILL)
    end = command.wait(60)
    assert end.code == 2
    assert "a worker process died (out of memory?); the same command goes on" in end.said
    assert command.group_is_empty(30)


def test_an_ignored_signal_stays_ignored():
    def ignore():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def send():
        ignore()
        from logeval import cli

        app = cli.app
        cli.app = lambda **options: (os.kill(os.getpid(), signal.SIGHUP), app(**options))

    assert logeval("--version", before=send).code == 0
