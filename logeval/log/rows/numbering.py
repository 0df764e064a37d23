"""Rows with ids as they were given -> numbers inside, and the runs that rows of a search form.

A run is as many neighbours of one search as there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logeval.log.rows.conversion import OF_RESULT, OF_SEARCH, Rows
from logeval.log.rows.ids import Ids
from logeval.running.arrays import Bools, Floats, Ints


@dataclass(frozen=True)
class Numbered:
    """Runs and their rows, column by column; rows of run r: first[r] to first[r + 1].

    The first run may go on with the one before; then it has no place among ``runs``.
    """

    runs: dict[str, Ints]
    rows: dict[str, Ints | Floats]
    first: Ints


class Numbering:
    """Gives numbers to ids and runs, batch after batch."""

    def __init__(self, ids: Ids) -> None:
        self.ids = ids
        self.runs = 0
        self._last: dict[str, int] = {}  # what the row before shares with its run

    def of(self, rows: Rows) -> Numbered:
        """The next rows."""
        ids = {kind: self.ids.of(kind, given) for kind, given in rows.ids.items()}
        shared = {kind: ids[kind] for kind in OF_SEARCH if kind in ids}
        if rows.first is None:
            assert rows.key is not None
            shared = {"hi": rows.key.hi, "lo": rows.key.lo} | shared
            new = self._new(shared)
            begins = np.flatnonzero(new)
            run = self.runs - 1 + np.cumsum(new)
            per_run = {k: v[begins] for k, v in (shared | rows.of_search).items()}
        else:
            begins = rows.first[:-1]
            numbers = self.runs + np.arange(len(begins))
            run = np.repeat(numbers, np.diff(rows.first))
            key = (numbers.astype(np.uint64), np.zeros(len(begins), np.uint64))
            hi, lo = key if rows.key is None else rows.key
            per_run = {"hi": hi, "lo": lo} | shared | rows.of_search
            self._last = {}
        of_result = {kind: ids[kind] for kind in OF_RESULT if kind in ids}
        per_row = {"run": run, "position": rows.position, "clicks": rows.clicks}
        numbered = Numbered(
            {"run": self.runs + np.arange(len(begins)), **per_run},
            per_row | of_result | rows.of_result,
            np.append(begins, len(rows)),
        )
        self.runs += len(begins)
        return numbered

    def _new(self, shared: dict[str, Ints]) -> Bools:
        """Where a run begins."""
        new = np.zeros(len(shared["hi"]), np.bool_)
        for name, values in shared.items():
            new[1:] |= values[1:] != values[:-1]
            new[0] |= not self._last or self._last[name] != int(values[0])
        self._last = {name: int(values[-1]) for name, values in shared.items()}
        return new
