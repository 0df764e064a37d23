"""What rows are once their values are known, and what is common to all that become such rows.

Rows with ids as they were given -> numbers inside, and the runs that rows of a search form.

A run is as many neighbours of one search as there are.

Rows on their way to pages, on disk: all of them in their order, and the runs that they form.

In most logs a search is one run; then the rows are in order already. What belongs to a search
stands once per run, what belongs to a result once per row.
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from logeval.errors import visible
from logeval.log.columns.table_file import Batch
from logeval.log.layouts import Layout, as_days
from logeval.log.rejects import EXCERPT, Reject
from logeval.log.rows.ids import Given, Ids, NotNumbers, given_ids, session_numbers
from logeval.log.rows.values import BAD, DAY, GOOD, Sums, as_numbers, as_texts, as_times
from logeval.running.arrays import Bools, Floats, Ints

NONE = -1  # where there is no such number
APART, SEEN = -1, -2  # the position of a click, or of a view, that does not say where
OF_SEARCH = ("query", "user", "region")  # the same in all rows of a search
OF_RESULT = ("item", "domain")
MOST_CLICKS = np.iinfo(np.int32).max  # on a result


@dataclass(frozen=True)
class Rows:
    """Results, or clicks apart from them, one after the other.

    What belongs to a search stands with every row, unless ``first`` says which rows are of one:
    then it stands once for each. ``key`` tells one search from another; without one every search
    is another one.
    """

    key: Sums | None
    ids: dict[str, Given]
    position: Ints
    clicks: Ints
    of_search: dict[str, Ints] = field(default_factory=dict)  # session, serp, time, day, ...
    of_result: dict[str, Ints | Floats] = field(default_factory=dict)  # propensity, random, ...
    first: Ints | None = None  # rows of search s: first[s] to first[s + 1]
    dates: bool = False  # whether days are counted from 1970
    clock: bool = False  # whether times are

    def __len__(self) -> int:
        return len(self.position)

    def chosen(self, kept: Ints) -> Rows:
        """Some of the rows, where what belongs to a search stands with each."""
        assert self.key is not None
        return replace(
            self,
            key=Sums(self.key.hi[kept], self.key.lo[kept]),
            ids={kind: given[kept] for kind, given in self.ids.items()},
            position=self.position[kept],
            clicks=self.clicks[kept],
            of_search={name: values[kept] for name, values in self.of_search.items()},
            of_result={name: values[kept] for name, values in self.of_result.items()},
        )


@dataclass(frozen=True)
class Converted:
    """The rows of a batch that can be used, the others, and what was counted."""

    rows: Rows
    rejects: list[Reject]
    counts: Counter[str]


class Rejects:
    """The first reason against each record of a batch: a row, or a page with all its results."""

    def __init__(self, batch: Batch) -> None:
        self.numbers = batch.numbers  # of the records, in the batch
        self.good = np.ones(len(self.numbers), np.bool_)
        self.found: list[Reject] = list(batch.rejects)
        self.record: Ints | None = None  # of each value, where a record has several

    def inside(self, record: Ints) -> Rejects:
        """The same, for values of which record r has those where ``record`` is r."""
        inner = copy(self)  # which adds to the same list
        inner.record = record
        return inner

    def add(self, bad: Bools, reason: str, array: pa.Array | None = None) -> None:
        """Records with ``bad`` values are rejected; ``array`` has what was wrong with them."""
        places = np.flatnonzero(bad)
        records = places if self.record is None else self.record[places]
        new = self.good[records]
        new[1:] &= records[1:] != records[:-1]
        if not new.any():
            return
        texts = [""] * int(new.sum())
        if array is not None:
            texts = as_texts(array.take(pa.array(places[new]))).to_pylist()
        self.found += [
            Reject(int(self.numbers[record]), reason, visible(text[:EXCERPT]))
            for record, text in zip(records[new], texts, strict=True)
        ]
        self.good[records] = False

    def all(self) -> list[Reject]:
        """All of them in order."""
        return sorted(self.found, key=lambda reject: reject.line)

    def ids(self, kind: str, array: pa.Array, text: frozenset[str]) -> Given:
        """The ids of a column; an error names the record by its number."""
        try:
            return given_ids(kind, array, kind in text)
        except NotNumbers as error:
            record = error.place if self.record is None else self.record[error.place]
            raise NotNumbers(kind, int(self.numbers[record]), error.value) from None


def of_search(columns: dict[str, pa.Array], layout: Layout, rejects: Rejects) -> dict[str, Ints]:
    """What is known of searches beside their ids."""
    found: dict[str, Ints] = {}
    for role in ("session", "serp"):
        if role in columns:
            found[role] = session_numbers(columns[role])
    if "time" in columns:
        times = as_times(columns["time"], layout.unit)
        rejects.add(times.states == BAD, "not a time", columns["time"])
        found["time"] = times.filled(NONE)
        if layout.unit != "plain":
            found["day"] = np.where(times.states == GOOD, times.values // DAY, NONE)
    if "day" in columns:
        days = as_days(columns["day"], layout.dates)
        rejects.add(days.states == BAD, "not a day", columns["day"])
        found["day"] = days.filled(NONE)
    for role in ("test", "random"):
        if role in columns:
            flags = as_numbers(columns[role])
            bad = (flags.states == BAD) | (flags.values > 1)
            rejects.add(bad, f"{role} is neither true nor false", columns[role])
            found[role] = flags.filled(NONE)
    return found


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


NOTHING = np.empty(0, np.int64)


class Spill:
    """Rows and runs, in two files of ``folder``, and what of all rows must be known."""

    def __init__(self, folder: Path, numbering: Numbering) -> None:
        self.folder, self._numbering = folder, numbering
        folder.mkdir()
        self.rows = 0
        self.repeated = 0  # searches that were there before, whole; known once pages are made
        self.first_position: int | None = None
        self.first_day: int | None = None  # since 1970, if days are dates
        self.first_time: int | None = None  # likewise
        self._writers: dict[str, pq.ParquetWriter] = {}

    @property
    def run_file(self) -> Path:
        """One row per run."""
        return self.folder / "runs.parquet"

    @property
    def row_file(self) -> Path:
        """One row per row."""
        return self.folder / "rows.parquet"

    def add(self, rows: Rows) -> None:
        """Keep the next rows."""
        if len(rows):
            found = self._numbering.of(rows)
            self._write(self.run_file, found.runs)
            self._write(self.row_file, found.rows)
            self.rows += len(rows)
            days = rows.of_search.get("day", NOTHING) if rows.dates else NOTHING
            times = rows.of_search.get("time", NOTHING) if rows.clock else NOTHING
            self.first_position = _least(self.first_position, rows.position)
            self.first_day = _least(self.first_day, days)
            self.first_time = _least(self.first_time, times)

    def _write(self, file: Path, columns: dict[str, Ints | Floats]) -> None:
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        if file.name not in self._writers:
            self._writers[file.name] = pq.ParquetWriter(
                file,
                table.schema,
                compression="none",
                use_dictionary=False,
                write_statistics=False,
            )
        self._writers[file.name].write_table(table)

    def close(self) -> None:
        """Nothing more is coming."""
        for writer in self._writers.values():
            writer.close()
        self._writers = {}


def _least(known: int | None, values: Ints) -> int | None:
    """The least of what is known and of those values that are there."""
    there = values[values >= 0]
    if not len(there):
        return known
    return int(there.min()) if known is None else min(known, int(there.min()))
