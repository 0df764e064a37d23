"""The two ends of the scale: Random, and the Oracle, which knows the best action."""

from __future__ import annotations

import numpy as np

from logeval.policies.contextual.reference import ContextualReference
from logeval.policies.shared.replica import Replica
from logeval.running.arrays import Floats, Ints


class Fixed:
    """There is nothing to learn."""

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Nothing."""


class Random(Fixed):
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


class Oracle(Fixed):
    """The best list, or pair, at every step; or the best items in the order that is assumed."""

    def __init__(self, replica: Replica) -> None:
        self.best = replica.ask("best" if replica.given.order == "best" else "best_items")

    def recommend(self, t: int) -> Ints:
        """The same at every step."""
        return self.best


class ContextualRandom(ContextualReference):
    """A random list."""

    def scores(self, t: int) -> Floats:
        """All equal: ties are broken at random."""
        return np.zeros(len(self.x))


class ContextualOracle(Fixed):
    """The best list of the round."""

    def __init__(self, replica: Replica) -> None:
        self.setting, self.r, self.users = replica.setting, replica.r, replica.given.users

    def recommend(self, t: int) -> Ints:
        """For the user of the round, or for all users."""
        now = self.setting.ask("contexts").at(t)
        best: Ints = self.setting.ask("best")[self.r]
        if self.users == "each":
            return best
        A = np.empty_like(best)
        top = np.argsort(-self.setting.ask("common")()[self.r], kind="stable")
        A[now.order[self.r]] = top[: len(best)]
        return A
