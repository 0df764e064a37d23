"""Random, the Oracle, which knows the best action, and today's ranker, as the log shows it."""

from __future__ import annotations

import numpy as np

from logeval.running.arrays import Floats, Ints
from tests.references.contextual import ContextualReference
from tests.references.replica import Replica


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


class Logged(Fixed):
    """A list of the log, drawn as often as the log shows it; or always the most frequent one."""

    def __init__(self, replica: Replica) -> None:
        self.actions, p = replica.setting.ask("logged")(replica.r)
        self.up_to = np.cumsum(p) if replica.given.lists == "all" else np.ones(1)
        self.uniforms = replica.uniforms(1)

    def recommend(self, t: int) -> Ints:
        """List i with probability p_i."""
        u = self.uniforms.at(t)[0, 0]
        i = min(int(np.sum(self.up_to <= u)), len(self.up_to) - 1)
        action: Ints = self.actions[i]
        return action
