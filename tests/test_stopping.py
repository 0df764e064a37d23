"""A signal stops a command even where Python swallows the exception that it raises."""

import signal
import subprocess
import sys
import time

import pytest

SWALLOWS = """
import os, signal, sys, time
from logeval import stopping

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
