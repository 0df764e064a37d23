"""Lines that are not records: where and why, in ``rejects.tsv``, and whether they are too many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TextIO

from logeval.errors import LogevalError, visible
from logeval.log.lines.fields import REASONS, TOO_LONG
from logeval.running.arrays import Bytes, Ints

FILE = "rejects.tsv"
HEADER = "file\tline\treason\ttext\n"
EXCERPT = 200  # bytes of a rejected line that are kept
CHECK_BAD_AFTER = 1_000_000  # lines; before that, only at the end
EXAMPLES = 3  # rejects that an error names


def writing(folder: Path) -> TextIO:
    """The file of a folder, open for rows."""
    return open(folder / FILE, "w", encoding="utf-8", errors="backslashreplace", newline="\n")


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
        yield Reject(
            line, _reason(text, code), visible(text[:EXCERPT].decode(errors="backslashreplace"))
        )


def _reason(text: bytes, code: int) -> str:
    if code != TOO_LONG:
        if b"\0" in text:
            return "NUL byte"
        try:
            text.decode()
        except UnicodeDecodeError:
            return "not UTF-8"
    return REASONS[code]


class Tally:
    """What was counted in a file so far; over ``max_bad`` of its lines rejected is an error.

    ``unit`` is what they are called, where they are not lines.
    """

    def __init__(self, name: str, max_bad: float, unit: str = "lines") -> None:
        self.name, self.max_bad, self.unit = name, max_bad, unit
        self.counts: Counter[str] = Counter()
        self._examples: list[str] = []

    def add(self, counts: Counter[str], rejects: Iterable[Reject]) -> int:
        """Count the next block; returns the number of lines before it."""
        before = self.counts[self.unit]
        self.counts.update(counts)
        for reject in islice(rejects, EXAMPLES - len(self._examples)):
            place = f"{self.unit[:-1]} {before + reject.line + 1}: {reject.reason}"
            value = f", {reject.text!r}" if self.unit == "rows" and reject.text else ""
            self._examples.append(place + value)
        if self.counts[self.unit] > CHECK_BAD_AFTER:
            self.check()
            if self.counts["rejected"] == self.counts[self.unit]:
                raise LogevalError(
                    f"{self.name}: none of the first {self.counts[self.unit]:,} {self.unit} is a "
                    f"record ({'; '.join(self._examples)}); check the format; no table was written"
                )
        return before

    def check(self) -> Counter[str]:
        """The counts; raises if too many lines are not records."""
        bad, lines = self.counts["rejected"], self.counts[self.unit]
        if bad > self.max_bad * lines:
            foreign = any("not UTF-8" in example for example in self._examples)
            remedy = "convert it, as with iconv -f latin1 -t utf-8" if foreign else "check it"
            raise LogevalError(
                f"{self.name}: {bad:,} of {lines:,} {self.unit} ({bad / lines:.1%}) are not "
                f"records, over max_bad = {self.max_bad:g} ({'; '.join(self._examples)}); "
                f"{remedy}, or allow more with max_bad; no table was written"
            )
        return self.counts
