"""How a command is stopped: Ctrl-C, SIGTERM and SIGHUP clean up; the second time nothing waits.

What is on its way when a command is stopped is written under temporary names, which the next one
removes, so stopping at once loses nothing but time.

Python swallows an exception in a destructor or in a callback of C code, such as those of numba's
compiler, and tells ``sys.unraisablehook``; there the signal is sent once more, a little later.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import ctypes
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP
AGAIN = 0.05  # seconds
_heard: list[int] = []


def answer_signals() -> None:
    """From now on a signal raises KeyboardInterrupt, and the next one ends the process.

    A signal that is ignored stays so: ``nohup`` starts commands that way.
    """
    _heard.clear()
    for name in SIGNALS:
        signum = getattr(signal, name, None)
        if signum is not None and signal.getsignal(signum) is not signal.SIG_IGN:
            signal.signal(signum, _stop)
    sys.unraisablehook = _once_more


def exit_code() -> int:
    """Of a command that was stopped: 128 and the number of the signal, as shells have it."""
    return 128 + (_heard[0] if _heard else signal.SIGINT)


def leave(code: Any) -> None:
    """End a stopped command with its own exit code; return if it was not stopped.

    Once a KeyboardInterrupt has passed through ``exec`` of a string (numba and namedtuple do that),
    ``python -m`` ends by SIGINT, caught or not, and whatever SystemExit says. Py_Exit does not.
    """
    if _heard:
        ctypes.pythonapi.Py_Exit(int(code))


def end(code: Any) -> None:
    """End a command that is done, without tearing down its libraries.

    Threads with which Arrow reads ahead may still run then, and would abort the process.
    """
    if isinstance(code, str):
        print(code, file=sys.stderr)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # closed, or nobody reads any more
            stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _stop(signum: int, frame: FrameType | None) -> None:
    _heard.append(signum)
    if len(_heard) > 1:
        os.write(2, b"\nlogeval: stopped at once\n")
        os._exit(exit_code())
    raise KeyboardInterrupt


def _once_more(swallowed: Any) -> None:
    if not (issubclass(swallowed.exc_type, KeyboardInterrupt) and len(_heard) == 1):
        sys.__unraisablehook__(swallowed)
        return
    again = threading.Timer(AGAIN, _send, [_heard.pop()])
    again.daemon = True
    again.start()


def _send(signum: int) -> None:
    if hasattr(signal, "pthread_kill"):  # which wakes a sleeping main thread up
        signal.pthread_kill(threading.main_thread().ident or 0, signum)
    else:  # Windows
        _thread.interrupt_main(signal.Signals(signum))
