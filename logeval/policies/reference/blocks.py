"""What TopRank and UniRank share: blocks of a relation, and lists in random order."""

from __future__ import annotations

from typing import Any

import numpy as np

from logeval.running.arrays import Floats


def peel(beats: Any) -> Any:
    """Ordered blocks: again and again the items that none of those left beats."""
    left, blocks = np.arange(len(beats)), []
    while len(left):
        unbeaten = left[~beats[np.ix_(left, left)].any(axis=0)]
        blocks.append(unbeaten if len(unbeaten) else left)
        left = np.setdiff1d(left, blocks[-1])
    return blocks


def shuffle_first(pool: Any, u: Floats) -> Any:
    """Shuffle the first len(u) places of the pool, in place (Fisher and Yates)."""
    for k in range(min(len(pool), len(u))):
        j = k + int(u[k] * (len(pool) - k))
        pool[k], pool[j] = pool[j], pool[k]


def displayed(blocks: Any, K: int) -> Any:
    """(first place, block) of the blocks that start before K."""
    start, shown = 0, []
    for block in blocks:
        if start < K:
            shown.append((start, block))
        start += len(block)
    return shown
