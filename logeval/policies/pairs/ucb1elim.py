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

from logeval.policies.setting import Setting
from logeval.policies.shared.memory import floats, ints
from logeval.policies.shared.policy import KernelPolicy
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_inline, njit_views

STAGE, CURSOR, PULLS, N_LEFT = range(4)  # PULLS: rounds over the remaining pairs in this stage


class Stages(NamedTuple):
    """Of one replica."""

    S: Floats = floats("L")  # clicks on each pair
    left: Ints = ints("L")  # the remaining pairs come first
    state: Ints = ints(4)  # STAGE, CURSOR, PULLS, N_LEFT


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
def recommend_one(now, u, stages, A):
    """The next of the remaining pairs."""
    _, K = now
    pair = stages.left[stages.state[CURSOR]]
    A[0], A[1] = pair // K, pair % K


@njit_inline
def learn_one(now, stages, A, clicks):
    """Count the click, and move on to the next pair, round over the pairs, or stage."""
    (n, K), state = now, stages.state
    stages.S[A[0] * K + A[1]] += clicks[0]
    state[CURSOR] += 1
    if state[CURSOR] == state[N_LEFT]:
        state[CURSOR] = 0
        state[PULLS] -= 1
        if state[PULLS] == 0:
            eliminate_pairs(n, stages)


class UCB1Elim(KernelPolicy):
    """Elimination of pairs."""

    NAME, PAPER = "UCB1Elim", "Auer and Ortner 2010"
    KNOWS, READS, COST = "horizon", "the click", "L K"
    FIGURE = 12
    TRACK = "rank1"
    KERNELS = Stages(), recommend_one, learn_one

    def __init__(self, setting: Setting) -> None:
        pairs, n = setting.rows * setting.columns, max(setting.horizon, 3)
        super().__init__(setting, {}, items=pairs)
        self.memory.left[:] = np.arange(max(pairs))
        self.memory.state[:, PULLS], self.memory.state[:, N_LEFT] = stage_end(0, n), pairs
        self.rule = n, int(setting.columns[0])

    @classmethod
    def first_stage(cls, rows: int, columns: int, n: int) -> int:
        """The steps before anything can be eliminated: n_0 with every pair."""
        return int(stage_end.py_func(0, max(n, 3))) * rows * columns

    def remaining(self) -> Ints:
        """(R, 2) the rows and columns of the pairs that are not eliminated."""
        (_, K), stages = self.rule, self.memory
        left = [stages.left[r, :n] for r, n in enumerate(stages.state[:, N_LEFT])]
        return np.array([[len(set(pairs // K)), len(set(pairs % K))] for pairs in left])
