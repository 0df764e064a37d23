"""What the references of the contextual track share: all rows so far, and lists by score."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from logeval.policies.shared.replica import Replica
from logeval.running.arrays import Floats, Ints


class ContextualReference(ABC):
    """All rows observed so far, and the list by decreasing score."""

    def __init__(self, replica: Replica) -> None:
        self.given = replica.given
        self.contexts = replica.setting.ask("contexts")
        self.r, self.K, self.n = replica.r, replica.K, replica.n
        self.d = self.contexts.d
        self.uniforms = replica.uniforms(self.contexts.widest)
        self.feedback = getattr(self.given, "feedback", "dcm")
        self.told = getattr(self.given, "order", "told") == "told"
        self.X, self.y = np.empty((0, self.d)), np.empty(0)
        self.lam = getattr(self.given, "lam", 0.0) or float(self.K)
        self.generator = replica.generator

    def recommend(self, t: int) -> Ints:
        """The items with the largest scores, the best at the most terminating position."""
        now = self.contexts.at(t)
        self.x = now.X[now.table[self.r], now.row[self.r]]
        self.arm, self.query, self.block = now.arm[self.r], now.query, now.block
        u = self.uniforms.at(t)[0][: len(self.x)]
        top = np.lexsort((-u, -self.scores(t)))[: self.K]
        A = np.empty(self.K, dtype=np.int64)
        A[now.order[self.r] if self.told else np.arange(self.K)] = top
        return A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Keep the rows that were surely examined."""
        clicked = np.flatnonzero(clicks)
        none = 0 if self.feedback == "literal" else self.K
        end = clicked[0 if self.feedback == "first" else -1] + 1 if len(clicked) else none
        self.X = np.concatenate([self.X, self.x[A[:end]]])
        self.y = np.concatenate([self.y, clicks[:end].astype(float)])
        self.learn(t, A[:end], clicks[:end])

    @abstractmethod
    def scores(self, t: int) -> Floats:
        """The score of each item of the round."""

    def learn(self, t: int, A: Ints, clicks: Ints) -> None:  # noqa: B027
        """Learn from the rows of the round, which are kept already: for who keeps more."""

    def widths(self, lam: float) -> Floats:
        """||x||_{V^-1} with V = lambda I + sum x x'."""
        V_inv = np.linalg.inv(lam * np.eye(self.d) + self.X.T @ self.X)
        return np.sqrt(np.einsum("ai,ij,aj->a", self.x, V_inv, self.x))

    def least_squares(self, lam: float) -> Floats:
        """V^-1 sum y x."""
        V = lam * np.eye(self.d) + self.X.T @ self.X
        return np.linalg.solve(V, self.X.T @ self.y)
