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

The authors' programs (github.com/sumeetsk/rank1bandits) differ from what is printed.
``partner=fresh`` draws a partner for every row and column, not one for each sweep.
``budget=authors`` takes the bounds of the programs: KL bounds with budget log t + log log t at the
step t at which a stage ends, every pair counted once before it is shown (so a row starts with as
many observations as there are columns, none of them clicked), an upper bound of 1 for what was
never clicked; in Rank1Elim the first stage has ceil(2 log n) rounds instead of ceil(4 log n). Their
bisection stops after ten halvings; ours does not.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from logeval.policies.rank1elim import paper
from logeval.policies.setting import Setting
from logeval.policies.shared.bounds import KL, UCB1, kl_lower, kl_upper
from logeval.policies.shared.lazy_topk import plain
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import ZERO, njit_inline, njit_views
from logeval.running.uniforms import Uniforms

# the state of a replica; rounds are those left in the stage, cursor the place in the round
STAGE, ROUNDS, DONE, COLUMNS_PHASE, CURSOR, PARTNER, N_ROWS, N_COLUMNS = range(8)


class Rule(NamedTuple):
    """What makes the policies of this family differ."""

    kind: int  # of the bounds
    authors: bool  # bounds and first stage as in the authors' programs
    fresh: bool  # a partner for every row and column, or for all of a sweep


@njit_views
def stage_length(kind, stage, log_n):
    """n_l, the observations of each remaining row and column at the end of stage l."""
    return math.ceil((16.0 if kind == KL else 4.0) * 4.0**stage * log_n)


@njit_views
def rounds_of(rule, stage, log_n):
    """The rounds of stage l."""
    if stage == 0:
        if rule.authors and rule.kind != KL:
            return math.ceil(2.0 * log_n)
        return stage_length(rule.kind, ZERO, log_n)
    return stage_length(rule.kind, stage, log_n) - stage_length(rule.kind, stage - 1, log_n)


@njit_views
def divergence(rule, t, log_n):
    """The budget delta of the KL bounds (line 24); in the programs it follows the step t."""
    if rule.authors:
        log_t = math.log(max(t, 3))
        return log_t + math.log(log_t)
    return log_n + 3.0 * math.log(log_n) if log_n > 1.0 else log_n


@njit_views
def eliminate(rule, C, n, delta, log_n, h, remaining, n_remaining):
    """Lines 23 to 45 for rows, or columns, with n observations: update h, return what remains."""
    radius = math.sqrt(log_n / n)
    highest, winner = -math.inf, 0
    for a in range(n_remaining):
        i = remaining[a]
        mean = C[i] / n
        low = kl_lower(mean, delta / n) if rule.kind == KL else mean - radius
        if low > highest:
            highest, winner = low, i
    for i in range(h.shape[0]):
        mean = C[h[i]] / n
        if rule.kind != KL:
            high = mean + radius
        elif rule.authors and mean == 0.0:
            high = 1.0
        else:
            high = kl_upper(mean, delta / n)
        if high <= highest:
            h[i] = winner
    return unique(h, remaining)


@njit_views
def unique(h, remaining):
    """The values of h, in order, into ``remaining``; returns their number."""
    remaining[:] = 0
    for i in range(h.shape[0]):
        remaining[h[i]] = 1  # a mark, read before a value is written in its place
    n = 0
    for i in range(h.shape[0]):
        if remaining[i]:
            remaining[n] = i
            n += 1
    return n


class Remaining(NamedTuple):
    """Of all replicas, or of one."""

    state: Ints  # STAGE ... N_COLUMNS
    rows: Ints  # the remaining rows come first
    columns: Ints


class Counts(NamedTuple):
    """Of all replicas, or of one, with the names of Algorithm 1."""

    C_U: Floats  # clicks on each row, with random columns
    C_V: Floats  # clicks on each column, with random rows
    h_U: Ints  # the row that stands for each row
    h_V: Ints  # the column that stands for each column


@njit_inline
def recommend_one(remaining, A):
    """A row with the partner column, or a column with the partner row."""
    s = remaining.state
    if s[COLUMNS_PHASE]:
        A[0], A[1] = s[PARTNER], remaining.columns[s[CURSOR]]
    else:
        A[0], A[1] = remaining.rows[s[CURSOR]], s[PARTNER]


@njit_inline
def observe_one(t, rule, log_n, u, remaining, counts, A, click):
    """Count the click, and move to the next pair of the round, round, or stage."""
    s, (C_U, C_V, h_U, h_V) = remaining.state, counts
    if s[COLUMNS_PHASE]:
        C_V[A[1]] += click
    else:
        C_U[A[0]] += click
    s[CURSOR] += 1
    if not s[COLUMNS_PHASE]:
        if s[CURSOR] == s[N_ROWS]:  # now all columns with a random row
            s[COLUMNS_PHASE], s[CURSOR] = 1, 0
            s[PARTNER] = h_U[int(u * h_U.shape[0])]
        elif rule.fresh:
            s[PARTNER] = h_V[int(u * h_V.shape[0])]
        return
    if s[CURSOR] < s[N_COLUMNS]:
        if rule.fresh:
            s[PARTNER] = h_U[int(u * h_U.shape[0])]
        return
    s[ROUNDS] -= 1
    s[DONE] += 1
    if s[ROUNDS] == 0:
        delta, n_U, n_V = divergence(rule, t, log_n), s[DONE], s[DONE]
        if rule.authors:
            n_U, n_V = n_U + h_V.shape[0], n_V + h_U.shape[0]
        rows, columns = remaining.rows, remaining.columns
        s[N_ROWS] = eliminate(rule, C_U, n_U, delta, log_n, h_U, rows, s[N_ROWS])
        s[N_COLUMNS] = eliminate(rule, C_V, n_V, delta, log_n, h_V, columns, s[N_COLUMNS])
        s[STAGE] += 1
        s[ROUNDS] = rounds_of(rule, s[STAGE], log_n)
    s[COLUMNS_PHASE], s[CURSOR] = 0, 0  # now all rows with a random column
    s[PARTNER] = h_V[int(u * h_V.shape[0])]


@njit_inline
def remaining_of(r, start, remaining):
    """What remains of replica r."""
    rows = remaining.rows[start[r] : start[r + 1]]
    return Remaining(remaining.state[r], rows, remaining.columns[r])


@njit_views
def recommend_all(start, remaining, A):
    """``recommend_one`` for each replica."""
    remaining = Remaining(*remaining)
    for r in range(A.shape[0]):
        recommend_one(remaining_of(r, start, remaining), A[r])


@njit_views
def observe_all(t, rule, log_n, u, A, clicks, start, remaining, counts):
    """``observe_one`` for each replica."""
    rule, remaining, counts = Rule(*rule), Remaining(*remaining), Counts(*counts)
    for r in range(A.shape[0]):
        a, z = start[r], start[r + 1]
        mine = Counts(counts.C_U[a:z], counts.C_V[r], counts.h_U[a:z], counts.h_V[r])
        observe_one(
            t, rule, log_n, u[r, 0], remaining_of(r, start, remaining), mine, A[r], clicks[r, 0]
        )  # fmt: skip


class Rank1Elimination:
    """Elimination of rows and columns; as printed, or as in the authors' programs."""

    KNOWS, READS, COST = "horizon", "the click", "L + K"
    PARAMETERS: ClassVar[dict[str, object]] = {
        "budget": ("printed", "authors"),
        "partner": ("sweep", "fresh"),
    }
    TRACK: ClassVar[str] = "rank1"
    KIND: ClassVar[int]

    def __init__(
        self, setting: Setting, *, budget: str = "printed", partner: str = "sweep"
    ) -> None:
        rule = Rule(self.KIND, budget == "authors", partner == "fresh")
        (self._rule,) = plain(rule)
        R, K, L = setting.R, int(setting.columns[0]), setting.rows
        self._log_n = math.log(max(setting.horizon, 3))
        self._start = np.concatenate([[0], np.cumsum(L)]).astype(np.int64)
        rows, columns = np.concatenate([np.arange(n) for n in L]), np.tile(np.arange(K), (R, 1))
        counts = Counts(np.zeros(len(rows)), np.zeros((R, K)), rows, columns)
        self._remaining = Remaining(np.zeros((R, 8), dtype=np.int64), rows.copy(), columns.copy())
        self._state = plain(self._remaining, counts)
        state = self._remaining.state
        state[:, N_ROWS], state[:, N_COLUMNS] = L, K
        state[:, ROUNDS] = rounds_of(rule, 0, self._log_n)
        self._uniforms = Uniforms(setting.generators, 1)
        state[:, PARTNER] = [generator.integers(K) for generator in setting.generators]
        self._A = np.empty((R, 2), dtype=np.int64)

    @classmethod
    def first_stage(cls, rows: int, columns: int, n: int) -> int:
        """The steps before anything can be eliminated: n_0 with every row, n_0 with every column.

        Until the end of stage l it takes 4^l times as many, as long as nothing is eliminated.
        """
        return int(stage_length.py_func(cls.KIND, 0, math.log(max(n, 3)))) * (rows + columns)

    def recommend(self, t: int) -> Ints:
        """The pairs (R, 2) of step t."""
        recommend_all(self._start, self._state[0], self._A)
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks (R, 1) on the pairs A, the last ones recommended."""
        u = self._uniforms.at(t)
        observe_all(t, self._rule, self._log_n, u, A, clicks, self._start, *self._state)

    def left(self, r: int) -> tuple[Ints, Ints]:
        """The rows and columns of replica r that are not eliminated."""
        state, rows, columns = self._remaining
        a = self._start[r]
        return rows[a : a + state[r, N_ROWS]], columns[r, : state[r, N_COLUMNS]]

    def remaining(self) -> Ints:
        """(R, 2) the number of rows and columns that are not eliminated."""
        return self._remaining.state[:, [N_ROWS, N_COLUMNS]]


class Rank1ElimKL(Rank1Elimination):
    """Algorithm 1, with KL bounds."""

    NAME, PAPER = "Rank1ElimKL", "Katariya et al., IJCAI 2017"
    REFERENCE, FIGURE = paper.Rank1ElimKL, 10
    KIND = KL


class Rank1Elim(Rank1Elimination):
    """The earlier algorithm, with bounds from sub-Gaussian tails."""

    NAME, PAPER = "Rank1Elim", "Katariya et al., AISTATS 2017"
    REFERENCE, FIGURE = paper.Rank1Elim, 11
    KIND = UCB1
