"""What rows are once their values are known, and what is common to all that become such rows."""

from __future__ import annotations

from collections import Counter
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from logeval.errors import visible
from logeval.log.columns.table_file import Batch
from logeval.log.layouts.recognition import Layout, as_days
from logeval.log.rejects import EXCERPT, Reject
from logeval.log.rows.ids import Given, NotNumbers, given_ids, session_numbers
from logeval.log.rows.texts import BAD, GOOD, Sums
from logeval.log.rows.values import DAY, as_numbers, as_texts, as_times
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
