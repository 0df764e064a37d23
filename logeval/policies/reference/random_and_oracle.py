"""The two ends of the scale: Random, and the Oracle, which knows the best action."""

from __future__ import annotations

import numpy as np

from logeval.policies.reference.replica import Replica
from logeval.running.arrays import Ints


class Random:
    """A random list, or pair, at every step."""

    def __init__(self, replica: Replica) -> None:
        self.distinct = replica.setting.distinct
        self.limits = replica.setting.limits[replica.r]
        self.items = np.arange(self.limits[0])
        self.uniforms = replica.uniforms(len(self.limits))

    def recommend(self, t: int) -> Ints:
        """A list: the first K steps of a Fisher-Yates shuffle. A pair: any row and column."""
        u = self.uniforms.at(t)[0]
        if not self.distinct:
            return (u * self.limits).astype(np.int64)
        K, L = len(self.limits), len(self.items)
        for k in range(K):
            j = k + int(u[k] * (L - k))
            self.items[[k, j]] = self.items[[j, k]]
        return self.items[:K]

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Nothing to learn."""


class Oracle:
    """The best list, or pair, at every step; or the best items in the order that is assumed."""

    def __init__(self, replica: Replica, order: str = "best") -> None:
        self.best = replica.best() if order == "best" else replica.best_items()

    def recommend(self, t: int) -> Ints:
        """The same at every step."""
        return self.best

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Nothing to learn."""
