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


class Progress(NamedTuple):
    """Where each replica is, all (R,): rows of one array, of which a call unpacks but one."""

    stage: Ints
    rounds: Ints  # left in the stage
    done: Ints  # rounds so far, in all stages
    at_columns: Ints  # whether a round has done its rows
    cursor: Ints  # place among the remaining rows, or columns
    partner: Ints  # the column that is shown with the rows, or the row with the columns
    n_rows: Ints  # remaining
    n_columns: Ints


class Counts(NamedTuple):
    """Of all replicas, or of one, with the names of Algorithm 1."""

    C_U: Floats  # clicks on each row, with random columns
    C_V: Floats  # clicks on each column, with random rows
    h_U: Ints  # the row that stands for each row
    h_V: Ints  # the column that stands for each column
    rows: Ints  # the remaining rows come first
    columns: Ints  # the remaining columns come first


@njit_inline
def progress_of(state):
    """The rows by their names."""
    return Progress(state[0], state[1], state[2], state[3], state[4], state[5], state[6], state[7])


@njit_inline
def recommend_one(r, now, rows, columns, A):
    """A row with the partner column, or a column with the partner row."""
    if now.at_columns[r]:
        A[0], A[1] = now.partner[r], columns[now.cursor[r]]
    else:
        A[0], A[1] = rows[now.cursor[r]], now.partner[r]


@njit_views
def end_stage(r, t, rule, log_n, now, counts):
    """Eliminate rows and columns, and begin the next stage."""
    C_U, C_V, h_U, h_V, rows, columns = counts
    delta, n_U, n_V = divergence(rule, t, log_n), now.done[r], now.done[r]
    if rule.authors:
        n_U, n_V = n_U + h_V.shape[0], n_V + h_U.shape[0]
    now.n_rows[r] = eliminate(rule, C_U, n_U, delta, log_n, h_U, rows, now.n_rows[r])
    now.n_columns[r] = eliminate(rule, C_V, n_V, delta, log_n, h_V, columns, now.n_columns[r])
    now.stage[r] += 1
    now.rounds[r] = rounds_of(rule, now.stage[r], log_n)


@njit_inline
def stand_in(u, h):
    """The one that stands for a random row, or column."""
    return h[int(u * h.shape[0])]


@njit_inline
def observe_one(r, t, rule, log_n, u, now, counts, A, click):
    """Count the click, and move to the next pair of the round, round, or stage."""
    if now.at_columns[r]:
        counts.C_V[A[1]] += click
    else:
        counts.C_U[A[0]] += click
    now.cursor[r] += 1
    if now.at_columns[r] and now.cursor[r] == now.n_columns[r]:
        now.rounds[r] -= 1
        now.done[r] += 1
        if now.rounds[r] == 0:
            end_stage(r, t, rule, log_n, now, counts)
        now.at_columns[r], now.cursor[r] = 0, 0  # now all rows with a random column
        now.partner[r] = stand_in(u, counts.h_V)
    elif not now.at_columns[r] and now.cursor[r] == now.n_rows[r]:
        now.at_columns[r], now.cursor[r] = 1, 0  # now all columns with a random row
        now.partner[r] = stand_in(u, counts.h_U)
    elif rule.fresh:
        now.partner[r] = stand_in(u, counts.h_U if now.at_columns[r] else counts.h_V)


@njit_views
def recommend_all(A, start, state, rows, columns):
    """``recommend_one`` for each replica."""
    now = progress_of(state)
    for r in range(A.shape[0]):
        recommend_one(r, now, rows[start[r] : start[r + 1]], columns[r], A[r])


@njit_views
def observe_all(t, rule, log_n, u, A, clicks, start, state, counts):
    """``observe_one`` for each replica."""
    rule, now, (C_U, C_V, h_U, h_V, rows, columns) = Rule(*rule), progress_of(state), counts
    for r in range(A.shape[0]):
        a, z = start[r], start[r + 1]
        mine = Counts(C_U[a:z], C_V[r], h_U[a:z], h_V[r], rows[a:z], columns[r])
        observe_one(r, t, rule, log_n, u[r, 0], now, mine, A[r], clicks[r, 0])


class Rank1Elimination:
    """Elimination of rows and columns; as printed, or as in the authors' programs."""

    KNOWS, READS, COST = "horizon", "the click", "L + K"
    PARAMETERS: ClassVar = {"budget": ("printed", "authors"), "partner": ("sweep", "fresh")}
    TRACK = "rank1"
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
        self._counts = Counts(
            np.zeros(len(rows)), np.zeros((R, K)), rows, columns, rows.copy(), columns.copy()
        )
        (self._plain_counts,) = plain(self._counts)
        self._state = np.zeros((len(Progress._fields), R), dtype=np.int64)
        self._now = now = Progress(*self._state)
        now.n_rows[:], now.n_columns[:], now.rounds[:] = L, K, rounds_of(rule, 0, self._log_n)
        self._uniforms = Uniforms(setting.generators, 1)
        now.partner[:] = [generator.integers(K) for generator in setting.generators]
        self._A = np.empty((R, 2), dtype=np.int64)

    @classmethod
    def first_stage(cls, rows: int, columns: int, n: int) -> int:
        """The steps before anything can be eliminated: n_0 with every row, n_0 with every column.

        Until the end of stage l it takes 4^l times as many, as long as nothing is eliminated.
        """
        return int(stage_length.py_func(cls.KIND, 0, math.log(max(n, 3)))) * (rows + columns)

    def recommend(self, t: int) -> Ints:
        """The pairs (R, 2) of step t."""
        recommend_all(self._A, self._start, self._state, self._counts.rows, self._counts.columns)
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks (R, 1) on the pairs A, the last ones recommended."""
        u = self._uniforms.at(t)
        observe_all(
            t, self._rule, self._log_n, u, A, clicks, self._start, self._state, self._plain_counts
        )  # fmt: skip

    def left(self, r: int) -> tuple[Ints, Ints]:
        """The rows and columns of replica r that are not eliminated."""
        a, now = self._start[r], self._now
        return self._counts.rows[a : a + now.n_rows[r]], self._counts.columns[r, : now.n_columns[r]]

    def remaining(self) -> Ints:
        """(R, 2) the number of rows and columns that are not eliminated."""
        return np.column_stack([self._now.n_rows, self._now.n_columns])


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
