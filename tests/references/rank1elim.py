"""Rank1ElimKL and Rank1Elim, as printed in the papers.

rank1elimkl: Katariya et al., Bernoulli rank-1 bandits for click feedback (IJCAI 2017), Algorithm 1.
Rank1Elim: Katariya et al., Stochastic rank-1 bandits (AISTATS 2017), the same elimination with
other stages and bounds. ``budget=authors`` and ``partner=fresh`` are what the authors' programs do
(github.com/sumeetsk/rank1bandits).
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from logeval.running.arrays import Floats, Ints
from tests.references.bounds import kl_lcb, kl_ucb
from tests.references.replica import Replica, Stepwise

Pairs = Generator[tuple[int, int], int, None]  # yields pairs, and is sent their clicks


class Rank1ElimKL(Stepwise):
    """rank1elimkl, Algorithm 1."""

    def __init__(self, replica: Replica) -> None:
        self.K, self.L, given, self.t = replica.rows, replica.columns, replica.given, 0
        self.authors, self.fresh = given.budget == "authors", given.partner == "fresh"
        self.log_n = math.log(max(replica.n, 3))
        self.uniforms = replica.uniforms(1)
        # the first partner is drawn when the policy is made
        self.u = (replica.generator.integers(self.L) + 0.5) / self.L
        self.h_U, self.h_V = np.arange(self.K), np.arange(self.L)
        self.begin()

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Go on with the click, and the random number of the step."""
        self.u, self.t = self.uniforms.at(t)[0, 0], t
        super().update(t, A, clicks)

    def remaining(self) -> tuple[int, int]:
        """The number of remaining rows and columns."""
        return len(np.unique(self.h_U)), len(np.unique(self.h_V))

    def run(self) -> Pairs:
        """The algorithm; C_U and C_V count clicks, h_U and h_V say who stands for whom."""
        C_U, C_V = np.zeros(self.K), np.zeros(self.L)
        T_U, T_V = (self.L, self.K) if self.authors else (0, 0)  # observations of each
        stage = 0
        while True:
            I_l, J_l = np.unique(self.h_U), np.unique(self.h_V)
            for _ in range(self.rounds(stage)):
                j = self.random_column()
                for i in I_l:
                    C_U[i] += yield int(i), int(j)
                    j = self.random_column() if self.fresh else j
                i = self.random_row()
                for j in J_l:
                    C_V[j] += yield int(i), int(j)
                    i = self.random_row() if self.fresh else i
                T_U, T_V = T_U + 1, T_V + 1
            self.h_U = self.eliminate(self.h_U, C_U / T_U, T_U)
            self.h_V = self.eliminate(self.h_V, C_V / T_V, T_V)
            stage += 1

    def random_column(self) -> int:
        """A random column, or the one that stands for it."""
        return int(self.h_V[int(self.u * self.L)])

    def random_row(self) -> int:
        """A random row, or the one that stands for it."""
        return int(self.h_U[int(self.u * self.K)])

    def rounds(self, stage: int) -> int:
        """n_l - n_(l-1)."""
        before = self.stage_length(stage - 1) if stage else 0
        return self.stage_length(stage) - before

    def eliminate(self, h: Ints, mean: Floats, n_l: int) -> Ints:
        """Those with U <= the largest L are sent to the one that has it."""
        low, high = self.bounds(mean, n_l)
        remaining = np.unique(h)
        winner = remaining[np.argmax(low[remaining])]
        return np.where(high[h] <= low[winner], winner, h)

    def stage_length(self, stage: int) -> int:
        """n_l = ceil(16 4^l log n)."""
        return math.ceil(16.0 * 4.0**stage * self.log_n)

    def bounds(self, mean: Floats, n_l: int) -> tuple[Floats, Floats]:
        """KL bounds at budget log n + 3 log log n; in the program log t + log log t."""
        budget = self.log_n + 3.0 * math.log(self.log_n)
        if self.authors:
            log_t = math.log(max(self.t, 3))
            budget = log_t + math.log(log_t)
        low, high = kl_lcb(mean, float(n_l), budget), kl_ucb(mean, float(n_l), budget)
        return low, np.where(self.authors & (mean == 0.0), 1.0, high)


class Rank1Elim(Rank1ElimKL):
    """The earlier algorithm, with bounds from sub-Gaussian tails."""

    def rounds(self, stage: int) -> int:
        """n_l - n_(l-1); the first stage of the program is ceil(2 log n)."""
        if self.authors and stage == 0:
            return math.ceil(2.0 * self.log_n)
        return super().rounds(stage)

    def stage_length(self, stage: int) -> int:
        """n_l = ceil(4 4^l log n)."""
        return math.ceil(4.0 * 4.0**stage * self.log_n)

    def bounds(self, mean: Floats, n_l: int) -> tuple[Floats, Floats]:
        """mean +- sqrt(log n / n_l)."""
        radius = math.sqrt(self.log_n / n_l)
        return mean - radius, mean + radius
