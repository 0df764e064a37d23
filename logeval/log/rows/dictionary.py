"""Names -> ids, numbered from 0 in the order in which they come first; the names go to a file.

In memory is a table of checksums with open places, 20 bytes each and at most two thirds of them
taken: half a GiB for ten million names while it grows. What an id stands for is only in the file.
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


class Dictionary:
    """The ids of one kind of names, which are written to ``path`` as they come."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._hi, self._lo = np.zeros((2, PLACES), np.uint64)
        self._ids = np.full(PLACES, NONE, np.int32)
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
            room = len(self._ids) * 2 // 3
            done, n = _number(
                *sums, lengths, self._hi, self._lo, self._ids, self.size, room, done, found, new
            )
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
        places = 2 * len(self._ids)
        hi, lo = np.zeros((2, places), np.uint64)
        ids = np.full(places, NONE, np.int32)
        _move(self._hi, self._lo, self._ids, hi, lo, ids)
        self._hi, self._lo, self._ids = hi, lo, ids

    def close(self) -> None:
        """Write what is left; the table of checksums is let go."""
        if self._new or self._writer is None:
            self._new = self._new or [pa.array([], pa.string())]
            self._write()
        if self._writer is not None:
            self._writer.close()
        self._hi, self._lo = np.zeros((2, 0), np.uint64)
        self._ids = np.zeros(0, np.int32)


@njit_views
def _number(hi, lo, lengths, table_hi, table_lo, ids, size, room, r, found, new):
    """Look names up from row r on, and number new ones; ends early when the table is full.

    Returns the row after the last one, and how many are new; ``new`` has their rows.
    """
    n = 0
    mask = np.uint64(ids.shape[0] - 1)
    while r < hi.shape[0]:
        if lengths[r] == 0:
            found[r] = NONE
        elif r > 0 and hi[r] == hi[r - 1] and lo[r] == lo[r - 1]:
            found[r] = found[r - 1]
        else:
            place = hi[r] & mask
            while ids[place] != NONE and (table_hi[place] != hi[r] or table_lo[place] != lo[r]):
                place = (place + np.uint64(1)) & mask
            if ids[place] == NONE:
                if size + n >= room:
                    return r, n
                table_hi[place], table_lo[place], ids[place] = hi[r], lo[r], size + n
                new[n] = r
                n += 1
            found[r] = ids[place]
        r += 1
    return r, n


@njit_views
def _move(from_hi, from_lo, from_ids, hi, lo, ids):
    """Put all entries into a larger table."""
    mask = np.uint64(ids.shape[0] - 1)
    for i in range(from_ids.shape[0]):
        if from_ids[i] != NONE:
            place = from_hi[i] & mask
            while ids[place] != NONE:
                place = (place + np.uint64(1)) & mask
            hi[place], lo[place], ids[place] = from_hi[i], from_lo[i], from_ids[i]
