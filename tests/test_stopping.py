"""A signal stops a command even where Python swallows the exception that it raises."""

import signal
import subprocess
import sys
import time

import pytest

SWALLOWS = """
import os, signal, sys, time
from logeval.running import stopping

class Closing:
    def __del__(self):
        os.kill(os.getpid(), signal.{name})
        time.sleep(0.01)

stopping.answer_signals()
try:
    closing = Closing()
    del closing
    print("swallowed", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(stopping.exit_code())
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_in_a_destructor_is_not_lost(name):
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", SWALLOWS.format(name=name)],
        capture_output=True, text=True, timeout=50,
    )  # fmt: skip
    assert done.stdout == "swallowed\n"
    assert done.stderr == ""
    assert done.returncode == 128 + getattr(signal, name)
    assert time.monotonic() - started < 40


THROUGH_EXEC = """
import os, signal, sys
from logeval import cli
from logeval.running import stopping

def command(prog_name):
    try:
        exec("os.kill(os.getpid(), signal.{name})")
    except KeyboardInterrupt:
        sys.exit(stopping.exit_code())

cli.app = command
cli.main_of_module()
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_the_exit_code_is_kept_where_a_signal_came_in_exec(name, tmp_path):
    """``python -m`` would end by SIGINT: it remembers a KeyboardInterrupt that was caught."""
    (tmp_path / "stopped.py").write_text(THROUGH_EXEC.format(name=name))
    done = subprocess.run([sys.executable, "-m", "stopped"], cwd=tmp_path, timeout=50, check=False)
    assert done.returncode == 128 + getattr(signal, name)
