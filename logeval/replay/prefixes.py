"""The tree of lists: every prefix of every list has a number."""

from __future__ import annotations

import numpy as np

from logeval.running.arrays import Ints


def prefix_numbers(items: Ints) -> Ints:
    """The number of every prefix (n, K): equal prefixes have equal numbers; -1 beyond the end."""
    node = np.full(items.shape, -1, dtype=np.int64)
    size = int(items.max(initial=0)) + 1
    parent, n = np.zeros(len(items), dtype=np.int64), 0
    for k in range(items.shape[1]):
        there = np.flatnonzero(items[:, k] >= 0)
        _, number = np.unique(parent[there] * size + items[there, k], return_inverse=True)
        parent[there] = number
        node[there, k] = n + number
        n += int(number.max(initial=-1)) + 1
    return node


def owners(node: Ints, query: Ints, n: int) -> tuple[Ints, Ints]:
    """The query and the depth of each prefix."""
    owner, depth = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    p, k = np.nonzero(node >= 0)
    owner[node[p, k]], depth[node[p, k]] = query[p], k
    return owner, depth
