"""Names -> ids, numbered from 0 in the order in which they come first; the names go to a file.

In memory is a table of checksums with open places, at most two thirds of them taken: 400 MB for ten
million names while it grows. What an id stands for is only in the file. A place is two words, which
lie in one line of the processor's cache: one half of the checksum, and the upper part of the other
with the id, from 1 on, below it. Two of ten million names agree in these 96 bits with a probability
of 10^-15, and then would be one.

Ids as they are stored -> the whole numbers inside a log.

A kind of ids is either numbers, which stay as they are, or text, and then every id is a name with a
number in its ``Dictionary``. Which it is, is known from the first rows; when a later one does not
fit, ``NotNumbers`` asks for text, and reading begins anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from logeval.errors import visible
from logeval.log.names import KINDS, file_of
from logeval.log.rows.values import (
    BAD,
    GOOD,
    MISSING,
    Sums,
    as_numbers,
    as_texts,
    is_whole,
    numbers_of,
    sums_of_numbers,
    sums_of_texts,
)
from logeval.running.arrays import Bools, Ints
from logeval.running.kernels import njit_views
from logeval.storage.schemas import NAMES

PLACES = 1 << 12  # of a new table, a power of two
ROW_GROUP = 1 << 17
NONE = -1  # the id of a name that is missing
FREE, ONE, LOWER = (np.uint64(n) for n in (0, 1, 0xFFFFFFFF))
UPPER = ~LOWER


class Dictionary:
    """The ids of one kind of names, which are written to ``path`` as they come."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._table = np.zeros((PLACES, 2), np.uint64)
        self._new: list[pa.StringArray] = []
        self._writer: pq.ParquetWriter | None = None

    def ids(self, names: pa.StringArray, sums: Sums | None = None) -> Ints:
        """The id of each name; an empty one has none. ``sums`` are theirs, if they are known."""
        sums = sums_of_texts(names) if sums is None else sums
        found = np.empty(len(names), np.int64)
        lengths = np.diff(
            np.frombuffer(names.buffers()[1], np.int32)[names.offset :][: len(names) + 1]
        )
        done, new = 0, np.empty(len(names), np.int64)
        while done < len(names):
            done, n = _number(*sums, lengths, self._table, self.size, done, found, new)
            self._keep(names.take(pa.array(new[:n])))
            if done < len(names):
                self._grow()
        return found

    def _keep(self, names: pa.StringArray) -> None:
        self.size += len(names)
        if len(names):
            self._new.append(names)
        if sum(map(len, self._new)) >= ROW_GROUP:
            self._write()

    def _write(self) -> None:
        names = pa.concat_arrays(self._new)
        if self._writer is None:
            self.path.parent.mkdir(exist_ok=True)
            self._writer = pq.ParquetWriter(
                self.path, NAMES, compression="zstd", compression_level=1, use_dictionary=False
            )
        ids = pa.array(np.arange(self.size - len(names), self.size))
        self._writer.write_table(pa.Table.from_arrays([ids, names], schema=NAMES))
        self._new = []

    def _grow(self) -> None:
        larger = np.zeros((2 * len(self._table), 2), np.uint64)
        _move(self._table, larger)
        self._table = larger

    def close(self) -> None:
        """Write what is left; the table of checksums is let go."""
        if self._new or self._writer is None:
            self._new = self._new or [pa.array([], pa.string())]
            self._write()
        if self._writer is not None:
            self._writer.close()
        self._table = np.zeros((0, 2), np.uint64)


@njit_views
def _number(hi, lo, lengths, table, size, r, found, new):
    """Look names up from row r on, and number new ones; ends early when the table is full.

    Returns the row after the last one, and how many are new; ``new`` has their rows.
    """
    n, room = 0, table.shape[0] * 2 // 3
    mask = np.uint64(table.shape[0] - 1)
    while r < hi.shape[0]:
        if lengths[r] == 0:
            found[r] = NONE
        elif r > 0 and hi[r] == hi[r - 1] and lo[r] == lo[r - 1]:
            found[r] = found[r - 1]
        else:
            place, other = hi[r] & mask, lo[r] & UPPER
            held = table[place, 1]
            while held != FREE and (table[place, 0] != hi[r] or held & UPPER != other):
                place = (place + ONE) & mask
                held = table[place, 1]
            if held == FREE:
                if size + n >= room:
                    return r, n
                new[n] = r
                n += 1
                held = other | np.uint64(size + n)
                table[place, 0], table[place, 1] = hi[r], held
            found[r] = np.int64(held & LOWER) - 1
        r += 1
    return r, n


@njit_views
def _move(table, larger):
    """Put all entries into a larger table."""
    mask = np.uint64(larger.shape[0] - 1)
    for i in range(table.shape[0]):
        if table[i, 1] != FREE:
            place = table[i, 0] & mask
            while larger[place, 1] != FREE:
                place = (place + ONE) & mask
            larger[place, 0], larger[place, 1] = table[i, 0], table[i, 1]


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
