"""CascadeUCB1, CascadeKL-UCB, dcmKL-UCB, First-Click and Last-Click, as printed in the papers.

cascading-bandits: Kveton et al., Cascading bandits (ICML 2015), Algorithm 1. dcm-bandits: Katariya
et al., DCM bandits (ICML 2016), Algorithm 1 and section 5.2.
"""

from __future__ import annotations

import numpy as np

from logeval.policies.shared.options import positions
from logeval.running.arrays import Floats, Ints
from tests.references.bounds import kl_ucb_at, ucb1_at, ucb_v_at
from tests.references.contextual import ContextualReference
from tests.references.replica import Replica, largest


class CascadeUCB1:
    """cascading-bandits, Algorithm 1, with UCB1; the user leaves at the first click."""

    def __init__(self, replica: Replica) -> None:
        self.K, self.L, order = replica.K, replica.L, replica.given.order
        self.given = replica.given
        known = order == "known"
        self.positions = replica.ask("position_order") if known else positions(order, self.K)
        self.T, self.S = np.zeros(self.L), np.zeros(self.L)
        if replica.given.init == "sample":
            self.T, self.S = np.ones(self.L), replica.free_samples(1)[0].astype(float)

    def bound(self, t: int, p: Floats, T: Floats) -> Floats:
        """U_t(e), C / T wider where C clicks may be forged."""
        return ucb1_at(t, p, T) + getattr(self.given, "corruption", 0.0) / T

    def recommend(self, t: int) -> Ints:
        """The K items with the largest U_t, infinite before an item was examined."""
        U, seen = np.full(self.L, np.inf), self.T > 0
        U[seen] = self.bound(t, self.S[seen] / self.T[seen], self.T[seen])
        A = np.empty(self.K, dtype=np.int64)
        A[self.positions] = largest(U)[: self.K]
        return A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Count the examined items and their clicks."""
        examined, clicked = self.read(clicks)
        self.T[A[:examined]] += 1.0
        self.S[A[clicked]] += 1.0

    def read(self, clicks: Ints) -> tuple[int, Ints]:
        """How many positions were examined, and at which of them a click counts."""
        clicked = np.flatnonzero(clicks)
        return (clicked[0] + 1 if len(clicked) else len(clicks)), clicked[:1]


class CascadeKLUCB(CascadeUCB1):
    """cascading-bandits, Algorithm 1, with KL-UCB."""

    def bound(self, t: int, p: Floats, T: Floats) -> Floats:
        """U_t(e)."""
        return kl_ucb_at(t, p, T)


class CascadeUCBV(CascadeUCB1):
    """Vial, Sanghavi, Shakkottai, Srikant: Minimax regret for cascading bandits (NeurIPS 2022)."""

    def bound(self, t: int, p: Floats, T: Floats) -> Floats:
        """U_t(e)."""
        return ucb_v_at(t, p, T)


class DcmKLUCB(CascadeKLUCB):
    """dcm-bandits, Algorithm 1: everything up to the last click is examined."""

    def read(self, clicks: Ints) -> tuple[int, Ints]:
        """Up to the last click; all clicks."""
        clicked = np.flatnonzero(clicks)
        return (clicked[-1] + 1 if len(clicked) else len(clicks)), clicked


class FirstClick(DcmKLUCB):
    """dcm-bandits, section 5.2: dcmKL-UCB that sees the first click only."""

    sees = slice(0, 1)

    def read(self, clicks: Ints) -> tuple[int, Ints]:
        """As if the other clicks had not been."""
        seen = np.zeros_like(clicks)
        seen[np.flatnonzero(clicks)[self.sees]] = 1
        return super().read(seen)


class LastClick(FirstClick):
    """dcm-bandits, section 5.2: dcmKL-UCB that sees the last click only."""

    sees = slice(-1, None)


class ContextualKLUCB(ContextualReference):
    """dcm-bandits, Algorithm 1, a bandit for each query."""

    def __init__(self, replica: Replica) -> None:
        super().__init__(replica)
        self.last_block = 0
        self.forget()

    def forget(self) -> None:
        """Start again."""
        self.S, self.T = np.zeros(self.contexts.arms), np.zeros(self.contexts.arms)
        self.steps = np.zeros(self.contexts.queries, dtype=int)

    def scores(self, t: int) -> Floats:
        """The KL-UCB of each item, 1 without an observation."""
        if self.given.restart == "block" and self.block != self.last_block:
            self.forget()
            self.last_block = self.block
        self.steps[self.query] += 1
        S, T = self.S[self.arm], self.T[self.arm]
        U = np.ones(len(T))
        seen = T > 0
        if seen.any():
            U[seen] = kl_ucb_at(int(self.steps[self.query]), S[seen] / T[seen], T[seen])
        return U

    def learn(self, t: int, A: Ints, clicks: Ints) -> None:
        """Count."""
        self.T[self.arm[A]] += 1.0
        self.S[self.arm[A]] += clicks
