"""What was counted in a file of the log, block by block, and whether too much of it is bad."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice

from logeval.errors import LogevalError
from logeval.log.rejects import Reject

CHECK_BAD_AFTER = 1_000_000  # lines; before that, only at the end
EXAMPLES = 3  # rejects that an error names


class FileCounts:
    """The counts of a file so far; over ``max_bad`` of its lines rejected is an error."""

    def __init__(self, name: str, max_bad: float) -> None:
        self.name, self.max_bad = name, max_bad
        self.counts: Counter[str] = Counter()
        self._examples: list[str] = []

    def add(self, counts: Counter[str], rejects: Iterable[Reject]) -> int:
        """Count the next block; returns the number of lines before it."""
        before = self.counts["lines"]
        self.counts.update(counts)
        for reject in islice(rejects, EXAMPLES - len(self._examples)):
            self._examples.append(f"line {before + reject.line + 1}: {reject.reason}")
        if self.counts["lines"] > CHECK_BAD_AFTER:
            self.check()
            if self.counts["rejected"] == self.counts["lines"]:
                raise LogevalError(
                    f"{self.name}: none of the first {self.counts['lines']:,} lines is a record "
                    f"({'; '.join(self._examples)}); check the format; no table was written"
                )
        return before

    def check(self) -> None:
        """Raise if too many lines are not records."""
        bad, lines = self.counts["rejected"], self.counts["lines"]
        if bad > self.max_bad * lines:
            raise LogevalError(
                f"{self.name}: {bad:,} of {lines:,} lines ({bad / lines:.1%}) are not records, "
                f"over max_bad = {self.max_bad:g} ({'; '.join(self._examples)}); check the format, "
                "or allow more with max_bad; no table was written"
            )
