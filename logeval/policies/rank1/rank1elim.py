# mypy: allow-untyped-defs
"""Rank1ElimKL and Rank1Elim: find the largest entry of a rank-1 matrix by elimination.

Rank1ElimKL is Algorithm 1 of Katariya et al.: Bernoulli Rank-1 Bandits for Click Feedback
(IJCAI 2017). In stage l every remaining row is shown with a random remaining column, and every
remaining column with a random remaining row, until each has n_l = ceil(16 4^l log n)
observations. A row whose upper bound is not above the largest lower bound is eliminated: the
map h sends it, and all rows sent to it before, to the row that eliminated it, so that a random
row through h favours good ones. Columns likewise. The bounds are KL bounds with budget
log n + 3 log log n.

Rank1Elim (Katariya et al.: Stochastic Rank-1 Bandits, AISTATS 2017) is the same with
n_l = ceil(4 4^l log n) and mean +- sqrt(log n / n_l).
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numba import njit

from logeval.arrays import Ints
from logeval.policies.bounds import KL, UCB1, kl_lower, kl_upper
from logeval.policies.setting import Setting
from logeval.uniforms import Uniforms

# the state of a replica; rounds are those left in the stage, cursor the place in the round
STAGE, ROUNDS, COLUMNS_PHASE, CURSOR, PARTNER, N_ROWS, N_COLUMNS = range(7)


@njit(cache=True, nogil=True)
def stage_length(kind, stage, log_n):
    """n_l, the observations of each remaining row and column at the end of stage l."""
    return math.ceil((16.0 if kind == KL else 4.0) * 4.0**stage * log_n)


@njit(cache=True, nogil=True)
def eliminate(kind, C, n_l, log_n, h, remaining, n_remaining):
    """Lines 23 to 45 for rows, or for columns: update h; returns the number that remain."""
    budget = log_n + 3.0 * math.log(log_n) if log_n > 1.0 else log_n
    radius = math.sqrt(log_n / n_l)
    highest, winner = -math.inf, 0
    for a in range(n_remaining):
        i = remaining[a]
        mean = C[i] / n_l
        low = kl_lower(mean, budget / n_l) if kind == KL else mean - radius
        if low > highest:
            highest, winner = low, i
    for i in range(h.shape[0]):
        mean = C[h[i]] / n_l
        high = kl_upper(mean, budget / n_l) if kind == KL else mean + radius
        if high <= highest:
            h[i] = winner
    return unique(h, remaining)


@njit(cache=True, nogil=True)
def unique(h, remaining):
    """The values of h, in order, into ``remaining``; returns their number."""
    mark = np.zeros(h.shape[0], dtype=np.bool_)
    for i in range(h.shape[0]):
        mark[h[i]] = True
    n = 0
    for i in range(h.shape[0]):
        if mark[i]:
            remaining[n] = i
            n += 1
    return n


@njit(cache=True, nogil=True)
def recommend_rows(start, state, rows, columns, A):
    """The pair of each replica."""
    for r in range(A.shape[0]):
        s = state[r]
        if s[COLUMNS_PHASE]:
            A[r, 0], A[r, 1] = s[PARTNER], columns[r, s[CURSOR]]
        else:
            A[r, 0], A[r, 1] = rows[start[r] + s[CURSOR]], s[PARTNER]


@njit(cache=True, nogil=True)
def observe_one(kind, log_n, A, click, u, s, C_U, C_V, h_U, h_V, rows, columns):
    """Count the click, and move to the next pair of the round, round, or stage."""
    if s[COLUMNS_PHASE]:
        C_V[A[1]] += click
    else:
        C_U[A[0]] += click
    s[CURSOR] += 1
    if not s[COLUMNS_PHASE]:
        if s[CURSOR] == s[N_ROWS]:  # now all columns with a random row
            s[COLUMNS_PHASE], s[CURSOR] = 1, 0
            s[PARTNER] = h_U[int(u * h_U.shape[0])]
        return
    if s[CURSOR] < s[N_COLUMNS]:
        return
    s[ROUNDS] -= 1
    if s[ROUNDS] == 0:
        n_l = stage_length(kind, s[STAGE], log_n)
        s[N_ROWS] = eliminate(kind, C_U, n_l, log_n, h_U, rows, s[N_ROWS])
        s[N_COLUMNS] = eliminate(kind, C_V, n_l, log_n, h_V, columns, s[N_COLUMNS])
        s[STAGE] += 1
        s[ROUNDS] = stage_length(kind, s[STAGE], log_n) - n_l
    s[COLUMNS_PHASE], s[CURSOR] = 0, 0  # now all rows with a random column
    s[PARTNER] = h_V[int(u * h_V.shape[0])]


@njit(cache=True, nogil=True)
def update_rows(kind, log_n, A, clicks, u, start, state, C_U, C_V, h_U, h_V, rows, columns):
    """``observe_one`` for each replica."""
    for r in range(A.shape[0]):
        a, z = start[r], start[r + 1]
        observe_one(
            kind, log_n, A[r], clicks[r, 0], u[r, 0], state[r], C_U[a:z], C_V[r], h_U[a:z],
            h_V[r], rows[a:z], columns[r],
        )  # fmt: skip


class Rank1Elimination:
    """Elimination of rows and columns."""

    PARAMETERS: ClassVar[dict] = {}
    TRACK: ClassVar[str] = "rank1"
    KIND: ClassVar[int]

    def __init__(self, setting: Setting) -> None:
        R, K, L = setting.R, int(setting.columns[0]), setting.rows
        self._log_n = math.log(max(setting.horizon, 3))
        self._start = np.concatenate([[0], np.cumsum(L)]).astype(np.int64)
        self._h_U = np.concatenate([np.arange(n) for n in L])
        self._h_V = np.tile(np.arange(K), (R, 1))
        self.rows, self.columns = self._h_U.copy(), self._h_V.copy()
        self._C_U, self._C_V = np.zeros(self._start[-1]), np.zeros((R, K))
        self._uniforms = Uniforms(setting.generators, 1)
        self.state = np.zeros((R, 7), dtype=np.int64)
        self.state[:, N_ROWS], self.state[:, N_COLUMNS] = L, K
        self.state[:, ROUNDS] = stage_length(self.KIND, 0, self._log_n)
        self.state[:, PARTNER] = [generator.integers(K) for generator in setting.generators]
        self._A = np.empty((R, 2), dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The pairs (R, 2) of step t."""
        recommend_rows(self._start, self.state, self.rows, self.columns, self._A)
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks (R, 1) on the pairs A, the last ones recommended."""
        update_rows(
            self.KIND, self._log_n, A, clicks, self._uniforms.at(t), self._start, self.state,
            self._C_U, self._C_V, self._h_U, self._h_V, self.rows, self.columns,
        )  # fmt: skip

    def remaining(self) -> Ints:
        """(R, 2) the rows and columns that are not eliminated."""
        return self.state[:, [N_ROWS, N_COLUMNS]]


class Rank1ElimKL(Rank1Elimination):
    """Algorithm 1, with KL bounds."""

    KIND = KL


class Rank1Elim(Rank1Elimination):
    """The earlier algorithm, with bounds from sub-Gaussian tails."""

    KIND = UCB1
