"""Ids as they are stored -> the whole numbers inside a log.

A kind of ids is either numbers, which stay as they are, or text, and then every id is a name with a
number in its ``Dictionary``. Which it is, is known from the first rows; when a later one does not
fit, ``NotNumbers`` asks for text, and reading begins anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from logeval.errors import visible
from logeval.log.names import KINDS, file_of
from logeval.log.rows.dictionary import NONE, Dictionary
from logeval.log.rows.texts import (
    BAD,
    GOOD,
    MISSING,
    Sums,
    numbers_of,
    sums_of_numbers,
    sums_of_texts,
)
from logeval.log.rows.values import as_numbers, as_texts, is_whole
from logeval.running.arrays import Bools, Ints

IS_TEXT = np.int64(1 << 62)  # of a session that is no number


class NotNumbers(Exception):
    """An id that is no number where those before it were."""

    def __init__(self, kind: str, place: int, value: str) -> None:
        self.kind, self.place, self.value = kind, place, value
        super().__init__(f"row {place + 1}: {kind} {visible(value)!r} is no number")

    def found_in(self, file: str, before: int) -> NotNumbers:
        """The same, with its place in a file."""
        found = NotNumbers(self.kind, self.place + before, self.value)
        found.args = (f"{file}, {found}",)
        return found


@dataclass(frozen=True)
class Given:
    """The ids of some rows as they were given: numbers, or names and their checksums."""

    numbers: Ints | None
    names: pa.StringArray | None = None
    sums: Sums | None = None

    @property
    def missing(self) -> Bools:
        """Where there is none."""
        if self.numbers is not None:
            return self.numbers == NONE
        assert self.names is not None
        found: Bools = (
            np.diff(
                np.frombuffer(self.names.buffers()[1], np.int32)[self.names.offset :][
                    : len(self.names) + 1
                ]
            )
            == 0
        )
        return found

    def __getitem__(self, kept: Ints) -> Given:
        if self.numbers is not None:
            return Given(self.numbers[kept])
        assert self.names is not None
        assert self.sums is not None
        return Given(None, self.names.take(pa.array(kept)), Sums(*(s[kept] for s in self.sums)))


def given_ids(kind: str, array: pa.Array, text: bool) -> Given:
    """Ids of a kind that is text, or numbers; raises NotNumbers."""
    if text:
        names = as_texts(array)
        return Given(None, names, sums_of_texts(names))
    found = as_numbers(array, exact=True)
    if (bad := np.flatnonzero(found.states == BAD)).size:
        place = int(bad[0])
        raise NotNumbers(kind, place, as_texts(array.slice(place, 1))[0].as_py())
    return Given(found.filled(NONE))


def are_numbers(array: pa.Array, typed: bool) -> bool:
    """Whether the first values of a column are numbers; ``typed`` text never is."""
    if typed and not is_whole(array):
        return bool(array.null_count == len(array))
    return not (as_numbers(array, exact=True).states == BAD).any()


class Ids:
    """The ids of all kinds of one log; names go into files below ``folder``."""

    def __init__(self, folder: Path, text: frozenset[str]) -> None:
        self.text = text
        self._dictionaries = {
            kind: Dictionary(file_of(folder, kind)) for kind in KINDS if kind in text
        }

    def of(self, kind: str, given: Given) -> Ints:
        """The numbers of ids; NONE where there is none."""
        if given.numbers is not None:
            return given.numbers
        return self._dictionaries[kind].ids(given.names, given.sums)

    @property
    def sizes(self) -> dict[str, int]:
        """How many names there are of each kind."""
        return {kind: names.size for kind, names in self._dictionaries.items()}

    def close(self) -> None:
        """Write all names."""
        for names in self._dictionaries.values():
            names.close()


def sums_of(array: pa.Array) -> tuple[Sums, Bools]:
    """The checksum of each value, by which rows are told apart, and where there is none.

    A number has the same as text.
    """
    if pa.types.is_timestamp(array.type) or pa.types.is_date(array.type):
        array = array.cast(pa.int64() if pa.types.is_timestamp(array.type) else pa.int32())
    if is_whole(array):
        found = as_numbers(array, exact=True)
        if not (found.states == BAD).any():
            return sums_of_numbers(found.values), found.states == MISSING
    texts = as_texts(array)
    values, states = numbers_of(texts)
    if (states == GOOD).all():
        return sums_of_numbers(values), states == MISSING
    sums = sums_of_texts(texts)
    if (good := states == GOOD).any():
        numbers = sums_of_numbers(values)
        sums = Sums(*(np.where(good, a, b) for a, b in zip(numbers, sums, strict=True)))
    return sums, states == MISSING


def session_numbers(array: pa.Array) -> Ints:
    """Sessions as numbers: themselves, or a checksum of what is text; NONE where there is none."""
    found = as_numbers(array, exact=True)
    if not (found.states == BAD).any():
        return found.filled(NONE)
    sums = sums_of_texts(as_texts(array))
    marked = (sums.hi >> np.uint64(2)).astype(np.int64) | IS_TEXT
    return np.where(found.states == BAD, marked, found.filled(NONE))
