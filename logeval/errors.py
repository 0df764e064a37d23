"""The one exception that means "the input is wrong, and here is what to do about it"."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class LogevalError(Exception):
    """A wrong input. The message names the file, the place and the remedy, in one line."""


def one_line(error: BaseException) -> str:
    """What a library says of an error, without its line breaks."""
    return " ".join(str(error).split())


def short(value: object) -> str:
    """A value in a message: as Python shows it, or only its type where that would be long."""
    try:
        text = repr(value)
    except Exception:  # of a class of the user's
        text = ""
    return text if text and len(text) <= 100 and "\n" not in text else f"a {type(value).__name__}"


def visible(text: str, keep: str = "") -> str:
    """Text without control characters, which a terminal would obey; names may hold them.

    The end of a line is one of them, unless it is to be kept.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in text)


def printable(names: Iterable[str]) -> str:
    """Names of somebody else's, for a message of one line."""
    return ", ".join(name if name.isprintable() else repr(name) for name in names)


def unknown_names(kind: str, unknown: Iterable[str], known: Iterable[str]) -> LogevalError:
    """One error for all unknown names at once, each with the closest known ones."""
    by_lower = {name.lower(): name for name in known}
    parts = []
    for name in map(str, unknown):
        close = difflib.get_close_matches(name.lower(), by_lower, n=2, cutoff=0.4)
        hint = " or ".join(by_lower[c] for c in close)
        parts.append(f"{name!r}" + (f" (did you mean {hint}?)" if hint else ""))
    return LogevalError(
        f"unknown {kind}: {', '.join(parts)}; known: {', '.join(sorted(by_lower.values()))}"
    )
