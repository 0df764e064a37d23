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
from typing import Any, ClassVar, NamedTuple

import numpy as np

from logeval.policies.setting import Setting
from logeval.policies.shared.bounds import KL, UCB1, kl_lower, kl_upper
from logeval.policies.shared.kernel_policy import KernelPolicy, floats, ints
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import ZERO, njit_inline, njit_views

LOG_N, KIND, AUTHORS, FRESH, COLUMNS = range(5)  # what makes the policies of this family differ
# of a replica: its step and stage, the rounds left in it and the rounds so far, the place in this
# round, the partner of the line there, how many rows remain, and how many lines
STEP, STAGE, ROUNDS, DONE, PLACE, PARTNER, N_ROWS, N_LEFT = range(8)


class Lines(NamedTuple):
    """The lines of the matrix, rows first and columns behind them, of one replica.

    C and h are C_U, C_V and h_U, h_V of Algorithm 1.
    """

    C: Floats = floats("L")  # clicks on each line, with random partners
    h: Ints = ints("L")  # the line that stands for it; a line that remains stands for itself
    left: Ints = ints("L")  # the remaining lines come first
    state: Ints = ints(8)
    u: Floats = floats(1)  # the uniform of the step
    rule: Floats = floats(5, shared=True)


@njit_views
def stage_length(kind, stage, log_n):
    """n_l, the observations of each remaining line at the end of stage l."""
    return math.ceil((16.0 if kind == KL else 4.0) * 4.0**stage * log_n)


@njit_views
def rounds_of(kind, authors, stage, log_n):
    """The rounds of stage l."""
    if stage == 0:
        if authors and kind != KL:
            return math.ceil(2.0 * log_n)
        return stage_length(kind, ZERO, log_n)
    return stage_length(kind, stage, log_n) - stage_length(kind, stage - 1, log_n)


@njit_views
def divergence(authors, t, log_n):
    """The budget delta of the KL bounds (line 24); in the programs it follows the step t."""
    if authors:
        log_t = math.log(max(t, 3))
        return log_t + math.log(log_t)
    return log_n + 3.0 * math.log(log_n) if log_n > 1.0 else log_n


@njit_views
def lower(kind, mean, n, delta, log_n):
    """The lower bound of a line with n observations."""
    return kl_lower(mean, delta / n) if kind == KL else mean - math.sqrt(log_n / n)


@njit_views
def upper(kind, authors, mean, n, delta, log_n):
    """The upper bound."""
    if kind != KL:
        return mean + math.sqrt(log_n / n)
    if authors and mean == 0.0:
        return 1.0
    return kl_upper(mean, delta / n)


@njit_views
def eliminate(kind, authors, C, h, first, end, n, delta, log_n):
    """Lines 23 to 45 for the lines from ``first`` to ``end``, which have n observations."""
    highest, winner = -math.inf, first
    for i in range(first, end):
        low = lower(kind, C[i] / n, n, delta, log_n) if h[i] == i else -math.inf
        if low > highest:
            highest, winner = low, i
    for i in range(first, end):
        if upper(kind, authors, C[h[i]] / n, n, delta, log_n) <= highest:
            h[i] = winner


@njit_views
def end_stage(rows, lines):
    """Eliminate rows and columns, and begin the next stage."""
    C, h, left, state, _, rule = lines
    log_n, kind, authors, columns = rule[LOG_N], rule[KIND], rule[AUTHORS], h.shape[0] - rows
    done, delta = state[DONE], divergence(authors, state[STEP], log_n)
    n_U, n_V = (done + columns, done + rows) if authors else (done, done)
    eliminate(kind, authors, C, h, ZERO, rows, n_U, delta, log_n)
    eliminate(kind, authors, C, h, rows, rows + columns, n_V, delta, log_n)
    state[N_ROWS], state[N_LEFT] = 0, 0
    for i in range(rows + columns):
        if h[i] == i:
            left[state[N_LEFT]] = i
            state[N_LEFT] += 1
            state[N_ROWS] += i < rows
    state[STAGE] += 1
    state[ROUNDS] = rounds_of(kind, authors, state[STAGE], log_n)


@njit_inline
def recommend_one(now, u, lines, A):
    """The next line with its partner: a row with a column, or a column with a row."""
    line, partner = lines.left[lines.state[PLACE]], lines.state[PARTNER]
    rows = lines.h.shape[0] - int(lines.rule[COLUMNS])
    A[0], A[1] = min(line, partner), max(line, partner) - rows
    lines.u[0] = u[0]


@njit_inline
def learn_one(now, lines, A, clicks):
    """Count the click, and move to the next line of the round, round, or stage."""
    state, h, columns = lines.state, lines.h, int(lines.rule[COLUMNS])
    rows = h.shape[0] - columns
    lines.C[lines.left[state[PLACE]]] += clicks[0]
    state[STEP] += 1
    state[PLACE] += 1
    if state[PLACE] == state[N_LEFT]:
        state[PLACE] = 0
        state[ROUNDS] -= 1
        state[DONE] += 1
        if state[ROUNDS] == 0:
            end_stage(rows, lines)
    elif state[PLACE] != state[N_ROWS] and not lines.rule[FRESH]:
        return  # the partner of the sweep
    if state[PLACE] < state[N_ROWS]:
        state[PARTNER] = h[rows + int(lines.u[0] * columns)]
    else:
        state[PARTNER] = h[int(lines.u[0] * rows)]


class Rank1Elimination(KernelPolicy):
    """Elimination of rows and columns; as printed, or as in the authors' programs."""

    KNOWS, READS, COST = "horizon", "the click", "L + K"
    PARAMETERS: ClassVar = {"budget": ("printed", "authors"), "partner": ("sweep", "fresh")}
    TRACK = "rank1"
    KERNELS = Lines(), recommend_one, learn_one
    KIND: ClassVar[int]

    def __init__(self, setting: Setting, **given: Any) -> None:
        rows, columns = setting.rows, int(setting.columns[0])
        super().__init__(setting, given, uniforms=1, items=rows + columns)
        authors, log_n = self.given.budget == "authors", math.log(max(setting.horizon, 3))
        fresh = self.given.partner == "fresh"
        self.memory.rule[:] = log_n, self.KIND, authors, fresh, columns
        self.memory.h[:] = self.memory.left[:] = np.arange(max(rows) + columns)
        state = self.memory.state
        state[:, ROUNDS] = rounds_of(self.KIND, authors, 0, log_n)
        state[:, N_ROWS], state[:, N_LEFT] = rows, rows + columns
        state[:, PARTNER] = rows + [g.integers(columns) for g in setting.generators]

    @classmethod
    def first_stage(cls, rows: int, columns: int, n: int) -> int:
        """The steps before anything can be eliminated: n_0 with every row, n_0 with every column.

        Until the end of stage l it takes 4^l times as many, as long as nothing is eliminated.
        """
        return int(stage_length.py_func(cls.KIND, 0, math.log(max(n, 3)))) * (rows + columns)

    def remaining(self) -> Ints:
        """(R, 2) the number of rows and columns that are not eliminated."""
        n_rows, n_left = self.memory.state[:, [N_ROWS, N_LEFT]].T
        return np.column_stack([n_rows, n_left - n_rows])


class Rank1ElimKL(Rank1Elimination):
    """Elimination of rows and columns by KL bounds (rank1elimkl, Algorithm 1)."""

    NAME, PAPER = "Rank1ElimKL", "Katariya et al., IJCAI 2017"
    FIGURE = 10
    KIND = KL


class Rank1Elim(Rank1Elimination):
    """The same with bounds from sub-Gaussian tails."""

    NAME, PAPER = "Rank1Elim", "Katariya et al., AISTATS 2017"
    FIGURE = 11
    KIND = UCB1
