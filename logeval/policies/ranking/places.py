"""From labels at places to items at positions, for policies that fill a list place by place.

A policy works with the labels that the environment has given the items at random, so that ties by
label are ties at random. Place 0 is for the item that it thinks best; ``order[k]`` is
the position of place k, 0 to K - 1 unless the user says otherwise (``order=2>1>3``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from logeval.arrays import Ints
from logeval.policies.ranking.cascade import positions
from logeval.policies.setting import Setting


class Places(NamedTuple):
    """The labels of the items of all replicas, padded to the largest L, and the positions."""

    L: Ints  # (R,)
    item: Ints  # (R, L) of each label
    label: Ints  # (R, L) of each item
    order: Ints  # (K,) position of each place


def places(setting: Setting, order: str = "descending") -> Places:
    """The environment has given the items random labels; ``order`` as for the cascade policies."""
    L = np.ascontiguousarray(setting.L, dtype=np.int64)
    item = np.tile(np.arange(max(L)), (setting.R, 1))
    label = item.copy()
    return Places(L, item, label, positions(order, setting.K))


@njit(cache=True, nogil=True)
def show(held, item, order, A):
    """Put the label at each place onto its position."""
    for k in range(A.shape[0]):
        A[order[k]] = item[held[k]]


@njit(cache=True, nogil=True)
def read(A, clicks, label, order, held, c):
    """The label and the click at each place of the list A."""
    for k in range(A.shape[0]):
        held[k] = label[A[order[k]]]
        c[k] = clicks[order[k]]


@njit(cache=True, nogil=True)
def shuffle_first(pool, u):
    """Put a random item of the pool at its front, then a random one of the rest, and so on."""
    m = pool.shape[0]
    for k in range(min(m, u.shape[0])):
        j = min(k + int(u[k] * (m - k)), m - 1)
        pool[k], pool[j] = pool[j], pool[k]


@njit(cache=True, nogil=True)
def insert_best(held, value, size, e, x):
    """Insert label e with value x into the list of the largest values; equal ones by label.

    Labels must come in increasing order. Returns the new size.
    """
    m = held.shape[0]
    if size == m and x <= value[m - 1]:
        return size
    j = min(size, m - 1)
    while j > 0 and x > value[j - 1]:
        held[j], value[j] = held[j - 1], value[j - 1]
        j -= 1
    held[j], value[j] = e, x
    return min(size + 1, m)
