"""UCB1, KL-UCB, TS and UCB1Elim on all pairs of a row and a column.

UCB1: Auer, Cesa-Bianchi, Fischer 2002, Figure 1. KL-UCB: Garivier and Cappe 2011, Algorithm 1 with
c = 3. TS: Thompson 1933, with Beta(1, 1) priors. UCB1Elim: Auer and Ortner 2010, Figure 1, with
the horizon known.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from logeval.running.arrays import Floats, Ints
from tests.references.bounds import kl_ucb_at, ucb1
from tests.references.replica import Replica, Stepwise


class PairUCB1:
    """UCB1 on pairs; pair i is row i // columns and column i % columns."""

    def __init__(self, replica: Replica) -> None:
        self.columns, self.generator = replica.columns, replica.generator
        N = replica.rows * replica.columns
        self.S, self.T = np.zeros(N), np.zeros(N)

    def bound(self, t: int, p: Floats, T: Floats) -> Floats:
        """Mean + sqrt(2 log t / T)."""
        return ucb1(p, T, 2.0 * math.log(t))

    def recommend(self, t: int) -> tuple[int, int]:
        """The pair with the largest bound; at first each pair once."""
        if t <= len(self.T):
            return divmod(t - 1, self.columns)
        U = self.bound(t, self.S / self.T, self.T)
        return divmod(int(np.argmax(U)), self.columns)

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Count the click."""
        i = A[0] * self.columns + A[1]
        self.T[i] += 1.0
        self.S[i] += clicks[0]


class PairKLUCB(PairUCB1):
    """KL-UCB on pairs."""

    def bound(self, t: int, p: Floats, T: Floats) -> Floats:
        """Budget log t + 3 log log t."""
        return kl_ucb_at(t, p, T)


class TS(PairUCB1):
    """Thompson sampling on pairs: a draw for every pair.

    The kernel draws only the largest value, from other random numbers; its pairs have the same
    distribution at every step, and are not the same.
    """

    def recommend(self, t: int) -> tuple[int, int]:
        """The pair with the largest theta ~ Beta(1 + S, 1 + T - S)."""
        theta = self.generator.beta(1.0 + self.S, 1.0 + self.T - self.S)
        return divmod(int(np.argmax(theta)), self.columns)


class UCB1Elim(Stepwise):
    """Improved UCB on pairs."""

    def __init__(self, replica: Replica) -> None:
        self.columns, self.n = replica.columns, max(replica.n, 3)
        self.B = np.arange(replica.rows * replica.columns)  # remaining pairs
        self.begin()

    def remaining(self) -> tuple[int, int]:
        """The rows and columns of the remaining pairs."""
        return len(np.unique(self.B // self.columns)), len(np.unique(self.B % self.columns))

    def run(self) -> Generator[tuple[int, int], int, None]:
        """The algorithm: yields pairs, and is sent their clicks."""
        n, n_before = self.n, 0
        S = np.zeros(len(self.B))
        for m in range(math.floor(0.5 * math.log2(n / math.e)) + 1):
            D = 2.0**-m
            n_m = math.ceil(2.0 * math.log(n * D**2) / D**2)
            for _ in range(n_m - n_before):
                for i in self.B:
                    S[i] += yield divmod(int(i), self.columns)
            mean, radius = S[self.B] / n_m, math.sqrt(math.log(n * D**2) / (2.0 * n_m))
            self.B = self.B[mean + radius >= mean.max() - radius]
            n_before = n_m
        while True:
            for i in self.B:
                yield divmod(int(i), self.columns)
