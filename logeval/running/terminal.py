"""What commands print for people, without control characters, which a terminal would obey.

Names of files, queries and policies are often somebody else's, and may hold them. So everything
that is printed passes here. What programs read is left as it is, and progress bars need theirs.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO

from logeval.errors import visible


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
