"""Lines that are not records: where they are and why, in ``rejects.tsv``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from logeval.log.lines.fields import REASONS, TOO_LONG
from logeval.running.arrays import Bytes, Ints

FILE = "rejects.tsv"
HEADER = "file\tline\treason\ttext\n"
EXCERPT = 200  # bytes of a rejected line that are kept


@dataclass(frozen=True)
class Reject:
    """A rejected line: its number within its block, from 0, why, and its beginning."""

    line: int
    reason: str
    text: str

    def row(self, before: int) -> str:
        """Its row in FILE, but for the name of the log; ``before`` lines precede its block."""
        return f"{before + self.line + 1}\t{self.reason}\t{self.text}\n"


def rejects_of(rejects: Ints, buf: Bytes) -> Iterator[Reject]:
    """The rejected lines of a block, one by one: there may be millions."""
    for i in range(rejects.shape[1]):
        line, start, end, code = rejects[:, i].tolist()
        text = buf[start:end].tobytes()
        yield Reject(line, _reason(text, code), _printable(text[:EXCERPT]))


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
