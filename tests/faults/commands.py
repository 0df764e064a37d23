"""Run a command of logeval in a copy of this process: as quickly as a call, and it can be killed.

A fork has everything imported and compiled already, so a command costs milliseconds, and
hundreds of kills fit into a test.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from logeval import cli
from logeval.errors import LogevalError
from logeval.running.kernels import dot

LATE = (  # what commands import when they need it, and take most of a second for
    "duckdb", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_pdf",
    "matplotlib.backends.backend_svg", "pyarrow.acero", "pyarrow.dataset", "pyarrow.pandas_compat",
    "jinja2", "typer._adapters", "rich.markup", "rich.progress", "rich.table", "scipy.optimize",
    "logeval.pipeline", "logeval.reports.report",
)  # fmt: skip
for name in LATE:
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
dot(np.ones(1), np.ones(1))  # the first kernel makes numba import the rest of itself

TRACEBACK = 70  # exit code of a command that raised
SECONDS = 300  # beyond it a command hangs, on a busy machine as well


@dataclass(frozen=True)
class Ended:
    code: int  # negative: the signal that ended it
    said: str

    def is_clear(self):
        """Success, or an error in one line: never a traceback."""
        return self.code != TRACEBACK and "Traceback" not in self.said


class Command:
    """A running command; ``before`` is called in its process before it starts.

    ``call`` is called instead of the command if it is given.
    """

    def __init__(self, *arguments, before=lambda: None, call=None):
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        self.pid = os.fork()
        if self.pid == 0:
            self._run([str(a) for a in arguments], before, call or cli.main)
        self._ended = None

    def _run(self, arguments, before, call):
        code = TRACEBACK
        try:
            os.setpgid(0, 0)  # Ctrl-C reaches a command and its workers, and nobody else
            for number in (1, 2):
                os.dup2(self._said.fileno(), number)
            sys.stdout, sys.stderr = (open(n, "w", closefd=False) for n in (1, 2))  # noqa: SIM115
            sys.argv = ["logeval", *arguments]
            before()
            call()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except LogevalError as error:
            print(f"logeval: {error}")
            code = 2
        except BaseException:
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):  # it may be closed
                    stream.flush()
            os._exit(code)

    def poll(self):
        if self._ended is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._ended = os.waitstatus_to_exitcode(status)
        return self._ended

    def wait(self, seconds=SECONDS) -> Ended:
        until = time.monotonic() + seconds
        while self.poll() is None:
            if time.monotonic() > until:
                os.killpg(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                self._ended = -signal.SIGKILL
                raise AssertionError(f"hangs: {self.said()}")
            time.sleep(0.005)
        end = Ended(self._ended, self.said())
        self._said.close()
        return end

    def said(self):
        return os.pread(self._said.fileno(), 1 << 20, 0).decode(errors="replace")

    def group_is_empty(self, seconds):
        """Whether no process that the command started is left, some time after its end."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                os.killpg(self.pid, 0)
            except ProcessLookupError:
                return True
            time.sleep(0.01)
        return False


def logeval(*arguments, before=lambda: None, call=None) -> Ended:
    """Run a command to its end."""
    return Command(*arguments, before=before, call=call).wait()


def content(folder):
    """Every file below a folder with its bytes."""
    files = [p for p in Path(folder).rglob("*") if p.is_file()]
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in files}
