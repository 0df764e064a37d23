"""A command and its terminal: what is printed, how it is stopped, and how it ends.

Names of files, queries and policies are often somebody else's, and may hold control characters,
which a terminal would obey: everything that is printed for people passes here. What programs read
is left as it is, and progress bars need theirs.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import signal
import sys
from types import FrameType
from typing import Any, TextIO

from logeval.errors import visible

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP
_heard: list[int] = []


class _Visible:
    """A stream that spells control characters out, except ends of lines and tabs."""

    def __init__(self, stream: TextIO) -> None:
        self.unguarded = stream

    def write(self, text: str) -> int:
        """Write text, and return its length."""
        self.unguarded.write(visible(text, keep="\n\t"))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unguarded, name)


def guard() -> None:
    """From now on, what this process prints shows its control characters."""
    for name in ("stdout", "stderr"):
        if (stream := getattr(sys, name)) is not None:  # which a closed one is
            stream = unguarded(stream)
            if isinstance(stream, io.TextIOWrapper):  # not every terminal has the papers' letters
                stream.reconfigure(errors="backslashreplace")
            setattr(sys, name, _Visible(stream))


def unguarded(stream: Any) -> TextIO:
    """The stream itself: for what programs read, and for progress bars."""
    found: TextIO = stream.unguarded if isinstance(stream, _Visible) else stream
    return found


def has_display() -> bool:
    """Whether a person sits before this process who can be shown a page."""
    remote = sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    return not remote and "CI" not in os.environ and sys.stdout.isatty()


def answer_signals() -> None:
    """From now on a signal raises KeyboardInterrupt, and the next one ends the process.

    A signal that is ignored stays so: ``nohup`` starts commands that way.
    """
    _heard.clear()
    for name in SIGNALS:
        signum = getattr(signal, name, None)
        if signum is not None and signal.getsignal(signum) is not signal.SIG_IGN:
            signal.signal(signum, _stop)


def _stop(signum: int, frame: FrameType | None) -> None:
    _heard.append(signum)
    if len(_heard) > 1:
        os.write(2, b"\nlogeval: stopped at once\n")
        os._exit(exit_code())
    raise KeyboardInterrupt


def exit_code() -> int:
    """Of a command that was stopped: 128 and the number of the signal, as shells have it."""
    return 128 + (_heard[0] if _heard else signal.SIGINT)


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
