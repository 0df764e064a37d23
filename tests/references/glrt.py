"""GLRT-CascadeUCB and GLRT-CascadeKL-UCB as in the paper, with every split of the history tried.

Wang, Zhou, Li, Varshney, Zhao: Nearly optimal algorithms for piecewise-stationary cascading bandits
(arXiv 1909.05886), Algorithms 1 and 2. The threshold of the test is that of Besson, Kaufmann:
The generalized likelihood ratio test meets klUCB (arXiv 1902.01575), without the function whose
value is near its argument.
"""

from __future__ import annotations

import math

import numpy as np

from logeval.policies.shared.options import error_of, exploration_of, positions
from logeval.running.arrays import Floats, Ints
from tests.references.bounds import budget_at, kl, kl_ucb, ucb1
from tests.references.replica import Replica, largest


def changed(X: list[int], delta: float) -> bool:
    """Whether observations of one item have changed their mean (Algorithm 1)."""
    n = len(X)
    before = np.cumsum(X)[:-1].astype(float)
    s, mean = np.arange(1, n), np.full(n - 1, np.mean(X))
    statistic = s * kl(before / s, mean) + (n - s) * kl((sum(X) - before) / (n - s), mean)
    return bool(n > 1 and statistic.max() >= math.log(3.0 * n * math.sqrt(n) / delta))


class GLRTCascadeUCB:
    """Algorithm 2 with UCB1."""

    def __init__(self, replica: Replica) -> None:
        self.K, self.L = replica.K, replica.L
        self.order = positions(replica.given.order, self.K)
        self.round = exploration_of(replica.given.p, self.L, replica.n)
        self.delta = error_of(replica.given.delta, replica.n)
        self.restart(0)

    def restart(self, t: int) -> None:
        """Forget everything up to step t."""
        self.tau, self.X = t, [[] for _ in range(self.L)]  # type: tuple[int, list[list[int]]]

    def bound(self, s: int, p: Floats, T: Floats) -> Floats:
        """p + sqrt(1.5 log s / T)."""
        return ucb1(p, T, 1.5 * math.log(s))

    def recommend(self, t: int) -> Ints:
        """The K items with the largest bounds; in rounds each item is first, once."""
        s = t - self.tau
        U, seen = np.full(self.L, np.inf), np.array([len(x) > 0 for x in self.X])
        if seen.any():
            T = np.array([float(len(x)) for x in self.X])[seen]
            S = np.array([float(sum(x)) for x in self.X])[seen]
            U[seen] = self.bound(s, S / T, T)
        best = largest(U)
        if self.round and (s - 1) % self.round < self.L:
            forced = (s - 1) % self.round
            best = np.concatenate([[forced], best[best != forced]])
        A = np.empty(self.K, dtype=np.int64)
        A[self.order] = best[: self.K]
        return A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Observe up to the first click, and test every item that was observed."""
        clicked = np.flatnonzero(clicks)
        examined = A[: clicked[0] + 1] if len(clicked) else A
        for k, e in enumerate(examined):
            self.X[e].append(int(clicks[k]))
        if any(changed(self.X[e], self.delta) for e in examined):
            self.restart(t)


class GLRTCascadeKLUCB(GLRTCascadeUCB):
    """Algorithm 2 with KL-UCB."""

    def bound(self, s: int, p: Floats, T: Floats) -> Floats:
        """KL-UCB."""
        return kl_ucb(p, T, budget_at(s))
