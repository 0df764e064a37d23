"""Array types used in signatures."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[Any]  # integers of any width
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]


def sum_by(index: Ints, weight: Floats, size: int) -> Floats:
    """The sums of ``weight`` over equal ``index``, (size,)."""
    return np.bincount(index, weight, minlength=size).astype(np.float64, copy=False)


def distinct(key: Ints, size: int) -> tuple[Ints, Ints]:
    """The distinct keys in 0..size-1, ascending, and where each key is among them.

    As ``np.unique`` with its inverse, without sorting where a table of all keys is small.
    """
    if size > 8 * len(key) + 1_000_000:
        keys, inverse = np.unique(key, return_inverse=True)
        return keys, inverse
    present = np.zeros(size, dtype=np.bool_)
    present[key] = True
    keys = np.flatnonzero(present)
    place = np.empty(size, dtype=np.int64)
    place[keys] = np.arange(len(keys))
    return keys, place[key]


def place_of(ids: Ints, known: Ints) -> Ints:
    """Where each id is among the known ones; -1: nowhere."""
    if not len(known):
        return np.full(np.shape(ids), -1)
    order = np.argsort(known, kind="stable")
    at = order[np.searchsorted(known, ids, sorter=order).clip(max=len(known) - 1)]
    return np.where(known[at] == ids, at, -1)
