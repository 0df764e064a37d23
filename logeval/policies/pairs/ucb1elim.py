"""UCB1Elim on all pairs (item, position): elimination without their structure.

Auer and Ortner: UCB revisited (2010), Figure 1, with the horizon n known. In stage m every
remaining pair is shown until it has n_m = ceil(2 log(n D^2) / D^2) observations, D = 2^-m; pairs
with mean + r < max(mean - r), r = sqrt(log(n D^2) / (2 n_m)), are eliminated. After stage
floor(log2(n / e) / 2) the remaining pairs are shown in turn.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from logeval.policies.pairs import paper
from logeval.policies.setting import Setting
from logeval.policies.shared.lazy_topk import plain
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_inline, njit_views

STAGE, CURSOR, PULLS, N_LEFT = range(4)  # PULLS: rounds over the remaining pairs in this stage


class Stages(NamedTuple):
    """Of all replicas, or of one."""

    S: Floats  # clicks on each pair
    left: Ints  # the remaining pairs come first
    state: Ints  # STAGE, CURSOR, PULLS, N_LEFT


@njit_views
def stage_end(stage, n):
    """n_m, the observations of each remaining pair at the end of stage m."""
    D2 = 4.0**-stage
    return math.ceil(2.0 * math.log(n * D2) / D2)


@njit_views
def eliminate_pairs(n, stages):
    """The end of a stage: drop pairs, and set the length of the next."""
    S, left, state = stages
    n_m = stage_end(state[STAGE], n)
    radius = math.sqrt(math.log(n * 4.0 ** -state[STAGE]) / (2.0 * n_m))
    best = 0.0
    for i in range(state[N_LEFT]):
        best = max(best, S[left[i]] / n_m)
    kept = 0
    for i in range(state[N_LEFT]):
        if S[left[i]] / n_m + radius >= best - radius:
            left[kept] = left[i]
            kept += 1
    state[N_LEFT] = kept
    state[STAGE] += 1
    if state[STAGE] <= int(0.5 * math.log2(n / math.e)):
        state[PULLS] = stage_end(state[STAGE], n) - n_m
    else:
        state[PULLS] = -1  # the last stage: go on in turn


@njit_inline
def observe_one(n, pair, click, stages):
    """Count the click, and move on to the next pair, round over the pairs, or stage."""
    state = stages.state
    stages.S[pair] += click
    state[CURSOR] += 1
    if state[CURSOR] == state[N_LEFT]:
        state[CURSOR] = 0
        state[PULLS] -= 1
        if state[PULLS] == 0:
            eliminate_pairs(n, stages)


@njit_views
def observe_all(n, start, stages, K, A, clicks):
    """``observe_one`` for each replica."""
    stages = Stages(*stages)
    for r in range(A.shape[0]):
        a, z = start[r], start[r + 1]
        mine = Stages(stages.S[a:z], stages.left[a:z], stages.state[r])
        observe_one(n, A[r, 0] * K + A[r, 1], clicks[r, 0], mine)


class UCB1Elim:
    """Elimination of pairs."""

    NAME, PAPER = "UCB1Elim", "Auer and Ortner 2010"
    KNOWS, READS, COST = "horizon", "the click", "L K"
    REFERENCE, FIGURE = paper.UCB1Elim, 12
    TRACK = "rank1"

    def __init__(self, setting: Setting) -> None:
        n = setting.rows * setting.columns
        self._K, self._n = int(setting.columns[0]), max(setting.horizon, 3)
        self._start = np.concatenate([[0], np.cumsum(n)]).astype(np.int64)
        state = np.zeros((setting.R, 4), dtype=np.int64)
        state[:, PULLS], state[:, N_LEFT] = stage_end(0, self._n), n
        self._stages = Stages(
            S=np.zeros(self._start[-1]), left=np.concatenate([np.arange(m) for m in n]), state=state
        )
        (self._state,) = plain(self._stages)
        self._A = np.empty((setting.R, 2), dtype=np.int64)

    @classmethod
    def first_stage(cls, rows: int, columns: int, n: int) -> int:
        """The steps before anything can be eliminated: n_0 with every pair."""
        return int(stage_end.py_func(0, max(n, 3))) * rows * columns

    def recommend(self, t: int) -> Ints:
        """The pairs (R, 2) of step t."""
        pair = self._stages.left[self._start[:-1] + self._stages.state[:, CURSOR]]
        np.divmod(pair, self._K, out=(self._A[:, 0], self._A[:, 1]))
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks (R, 1) on the pairs A, the last ones recommended."""
        observe_all(self._n, self._start, self._state, self._K, A, clicks)

    def left(self, r: int) -> Ints:
        """The pairs of replica r, row * K + column, that are not eliminated."""
        a = self._start[r]
        return self._stages.left[a : a + self._stages.state[r, N_LEFT]]

    def remaining(self) -> Ints:
        """(R, 2) the rows and columns of the pairs that are not eliminated."""
        left = [self.left(r) for r in range(len(self._A))]
        return np.array([[len(set(p // self._K)), len(set(p % self._K))] for p in left])
