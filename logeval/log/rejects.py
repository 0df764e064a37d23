"""Lines that are not records: where they are and why, in ``rejects.tsv``."""

from __future__ import annotations

from dataclasses import dataclass

from logeval.arrays import Bytes
from logeval.log.fields import REASONS, TOO_LONG
from logeval.log.scan import Scanned

FILE = "rejects.tsv"
HEADER = "file\tline\treason\ttext\n"
EXCERPT = 200  # bytes of a rejected line that are kept


@dataclass(frozen=True)
class Reject:
    """A rejected line: its number within its block, from 0, why, and its beginning."""

    line: int
    reason: str
    text: str


def rejects_of(block: Scanned, buf: Bytes) -> list[Reject]:
    """The rejected lines of a block."""
    found = []
    for line, start, end, code in block.rejects.T.tolist():
        text = buf[start:end].tobytes()
        found.append(Reject(line, _reason(text, code), _printable(text[:EXCERPT])))
    return found


def _reason(text: bytes, code: int) -> str:
    if code != TOO_LONG:
        if b"\0" in text:
            return "NUL byte"
        try:
            text.decode()
        except UnicodeDecodeError:
            return "not UTF-8"
    return REASONS[code]


def _printable(text: bytes) -> str:
    """One line without TABs: what is not printable is escaped."""
    readable = text.decode(errors="backslashreplace")
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in readable)
