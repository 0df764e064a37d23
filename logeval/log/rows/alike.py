"""Names that differ only by case, blanks at their ends or Unicode form: kept apart, and said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from logeval.log.names import KINDS, file_of, shortened
from logeval.log.rows.values import EIGHT, ONE, A, B, buffers, mixed, word
from logeval.running.arrays import Ints
from logeval.running.kernels import njit_inline, njit_views

BLANK = np.uint64(ord(" "))
# of each of eight bytes: its highest bit, and what brings A, or what is above Z, up to that bit
HIGHEST = np.uint64(0x8080808080808080)
FROM_A = np.uint64(0x0101010101010101 * (128 - ord("A")))
ABOVE_Z = np.uint64(0x0101010101010101 * (127 - ord("Z")))
TO_CASE = np.uint64(2)  # from the highest bit to the one that makes a letter small


def notes_on_names(folder: Path) -> list[str]:
    """What is to be said of the names of a log; a checksum of 64 bits stands for each."""
    notes = []
    for kind in KINDS:
        if not (file := file_of(folder, kind)).exists():
            continue
        with pq.ParquetFile(file) as names:
            batches = names.iter_batches(columns=["name"], batch_size=1 << 17)
            sums = np.concatenate([np.empty(0, np.uint64), *map(_folded_sums, batches)])
        ordered = np.sort(sums)
        again = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
        if len(again):
            two = pc.field("id").isin(np.flatnonzero(sums == again[0])[:2])
            found = ds.dataset(file).to_table(["name"], filter=two)["name"].to_pylist()
            like = " and ".join(repr(shortened(name)) for name in sorted(found))
            notes.append(
                f"{len(again):,} names of {kind} ids differ only by case, blanks or Unicode form, "
                f"as {like}; they are kept apart"
            )
    return notes


def _folded_sums(batch: pa.RecordBatch) -> Ints:
    """The checksum of each name of a batch, the same for those that are alike."""
    names = batch.column(0)
    foreign = pc.invert(pc.string_is_ascii(names))
    sums = _sums(names)
    if foreign.true_count:
        folded = pc.utf8_lower(pc.utf8_normalize(names.filter(foreign), "NFC"))
        sums[foreign.to_numpy(zero_copy_only=False)] = _sums(folded)
    return sums


def _sums(names: pa.StringArray) -> Ints:
    sums = np.empty(len(names), np.uint64)
    _sum_folded(*buffers(names), sums)
    return sums


@njit_inline
def small(w):
    """Eight bytes, of which capital letters of ASCII are made small."""
    low = w & ~HIGHEST
    capital = (low + FROM_A) & ~(low + ABOVE_Z) & ~w & HIGHEST
    return w | (capital >> TO_CASE)


@njit_views
def _sum_folded(offsets, data, sums):
    for r in range(sums.shape[0]):
        i, end = np.uint64(offsets[r]), np.uint64(offsets[r + 1])
        while i < end and data[i] == BLANK:
            i += ONE
        while i < end and data[end - ONE] == BLANK:
            end -= ONE
        h = (end - i) * A + B
        while i < end:
            h = mixed(h ^ small(word(data, i, end)), B)
            i += EIGHT
        sums[r] = mixed(h ^ A, B)
