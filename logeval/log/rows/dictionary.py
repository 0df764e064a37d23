"""Names -> ids, numbered from 0 in the order in which they come first; the names go to a file.

In memory is a table of checksums with open places, at most two thirds of them taken: 400 MB for ten
million names while it grows. What an id stands for is only in the file. A place is two words, which
lie in one line of the processor's cache: one half of the checksum, and the upper part of the other
with the id, from 1 on, below it. Two of ten million names agree in these 96 bits with a probability
of 10^-15, and then would be one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from logeval.log.rows.texts import Sums, sums_of_texts
from logeval.running.arrays import Ints
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
