"""RankedUCB1, RankedKL-UCB and RankedExp3: one bandit per position.

Radlinski, Kleinberg, Joachims: Learning diverse rankings with multi-armed bandits (ICML 2008),
Algorithm 2, for any bandit; Exp3 as in Auer et al., Gambling in a rigged casino (FOCS 1995).
"""

from __future__ import annotations

import math

import numpy as np

from logeval.running.arrays import Floats, Ints
from tests.references.bounds import kl_ucb_at, ucb1_at
from tests.references.replica import Replica, largest


class RankedUCB1:
    """Ranked bandits with UCB1; S and T hold a row for the bandit of each position."""

    def __init__(self, replica: Replica) -> None:
        self.K, self.L, self.collision = replica.K, replica.L, replica.given.collision
        self.uniforms = replica.uniforms(self.K if self.collision == "random" else 0)
        self.rounds = self.L if replica.given.init == "rounds" else 0
        self.T, self.S = np.zeros((self.K, self.L)), np.zeros((self.K, self.L))
        if not self.rounds:
            self.T, self.S = np.ones((self.K, self.L)), replica.free_samples(self.K).astype(float)
        self.chosen: list[int] = []

    def bound(self, t: int, p: Floats, T: Floats) -> Floats:
        """U_t(e)."""
        return ucb1_at(t, p, T)

    def recommend(self, t: int) -> list[int]:
        """From the first position down, the best item of its bandit."""
        u = self.uniforms.at(t)[0]
        if t <= self.rounds:  # every item once at every position
            self.chosen = [int(e) for e in np.roll(np.arange(self.L), 1 - t)[: self.K]]
            return self.chosen
        U = self.bound(t, self.S / self.T, self.T)
        A: list[int] = []
        self.chosen = []
        for k in range(self.K):
            best_first = largest(U[k])
            if self.collision == "best":
                best_first = np.array([e for e in best_first if e not in A])
            item = int(best_first[0])
            self.chosen.append(item)
            if item in A:
                free = [e for e in range(self.L) if e not in A]
                item = free[int(u[k] * len(free))]
            A.append(item)
        return A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """The choice of bandit k earns the click at k, and nothing if it was not shown."""
        for k, item in enumerate(self.chosen):
            self.T[k, item] += 1.0
            self.S[k, item] += clicks[k] if A[k] == item else 0.0


class RankedKLUCB(RankedUCB1):
    """Ranked bandits with KL-UCB."""

    def bound(self, t: int, p: Floats, T: Floats) -> Floats:
        """U_t(e)."""
        return kl_ucb_at(t, p, T)


class RankedExp3:
    """Ranked bandits with Exp3; weights as logarithms, so that they do not overflow."""

    def __init__(self, replica: Replica) -> None:
        self.K, self.L, self.collision = replica.K, replica.L, replica.given.collision
        bound = math.sqrt(self.L * math.log(self.L) / ((math.e - 1.0) * replica.n))
        self.gamma = replica.given.gamma or min(1.0, bound)
        self.uniforms = replica.uniforms(self.K if self.collision == "best" else 2 * self.K)
        self.log_W = np.zeros((self.K, self.L))
        self.chosen: list[int] = []
        self.probability: list[float] = []  # with which each was drawn

    def distribution(self, k: int) -> Floats:
        """P(e) = (1 - gamma) W(e) / sum W + gamma / L."""
        W = np.exp(self.log_W[k] - self.log_W[k].max())
        P: Floats = (1.0 - self.gamma) * W / W.sum() + self.gamma / self.L
        return P

    def recommend(self, t: int) -> list[int]:
        """From the first position down, a draw from P."""
        u = self.uniforms.at(t)[0]
        A: list[int] = []
        self.chosen, self.probability = [], []
        for k in range(self.K):
            P = self.distribution(k)
            if self.collision == "best":
                P[A] = 0.0  # among the free items
            cumulative = np.cumsum(P)
            item = int(np.searchsorted(cumulative, u[k] * cumulative[-1], side="right"))
            self.chosen.append(item)
            self.probability.append(float(P[item] / cumulative[-1]))
            if item in A:
                free = [e for e in range(self.L) if e not in A]
                item = free[int(u[self.K + k] * len(free))]
            A.append(item)
        return A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """W(e) *= exp(gamma / (L P)) after a click on the bandit's own choice, drawn with P."""
        for k, item in enumerate(self.chosen):
            if clicks[k] and A[k] == item:
                self.log_W[k, item] += self.gamma / (self.L * self.probability[k])
