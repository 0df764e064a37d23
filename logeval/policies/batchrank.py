"""BatchRank: batches of items with their positions, split and thinned out stage by stage.

A batch b has len(b) neighbouring positions and at least as many items. In a round its len(b) least
shown items are shown there in random order, and a click counts for those of them that have been
shown least of all. When every item has n_l = ceil(16 4^l log n) observations, stage l ends, with
KL bounds U and Lo on the click rates at budget log n + 3 log log n, and d_1, d_2, ... in order of
decreasing Lo:

- s is the largest k < len(b) with Lo(d_k) > U of all items after d_k. If there is one, the first s
  items and positions become a batch, the others another one, both at stage 0.
- Otherwise items with U(d) < Lo(d_len(b)) are dropped, and stage l + 1 begins.

Zoghi, Tunys, Ghavamzadeh, Kveton, Szepesvari, Wen: Online learning to rank in stochastic click
models (ICML 2017), Algorithms 1 to 4. A batch with as many items as positions goes on to the next
stage as well: it could never be split otherwise.

Counts of a batch differ by one at most, so its items are kept as those that wait for their next
observation, and the rest: a step costs O(K).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from logeval.policies.setting import Setting
from logeval.policies.shared.bounds import kl_budget, kl_lower, kl_upper
from logeval.policies.shared.kernel_policy import floats, ints
from logeval.policies.shared.options import ORDER
from logeval.policies.shared.places import ByPlaces, Places, read, show, shuffle_first, sort_by
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import ZERO, njit_inline, njit_views


class Batches(NamedTuple):
    """The batches of one replica, in order of their positions."""

    number: Ints = ints(1, fill=1)  # of batches
    items: Ints = ints("L")  # batch after batch; those that wait come first
    clicks: Ints = ints("L")  # of each item in this stage
    first: Ints = ints("K")  # where the items of each batch start
    size: Ints = ints("K")  # how many they are
    waiting: Ints = ints("K")  # how many of them wait
    shown: Ints = ints("K")  # observations of those that wait
    stage: Ints = ints("K")
    start: Ints = ints("K")  # first position
    length: Ints = ints("K")  # how many positions
    counts: Ints = ints("L")  # whether a click on this item counts
    U: Floats = floats("L", shared=True)  # bounds of each item at the end of a stage
    Lo: Floats = floats("L", shared=True)
    places: Places = Places()


@njit_views
def stage_length(stage, log_n):
    """n_l = ceil(16 4^l log n)."""
    return math.ceil(16.0 * 4.0**stage * log_n)


@njit_inline
def display(j, u, b, held):
    """Batch j shows its least shown items in random order; u are two uniforms per position."""
    K, start, length = held.shape[0], b.start[j], b.length[j]
    items, w = b.items[b.first[j] : b.first[j] + b.size[j]], min(b.waiting[j], length)
    rest, shown = items[b.waiting[j] :], held[start : start + length]
    for k in range(w):
        b.waiting[j] -= 1
        i, last = min(int(u[start + k] * (b.waiting[j] + 1)), b.waiting[j]), b.waiting[j]
        items[i], items[last] = items[last], items[i]
        shown[k] = items[last]
        b.counts[shown[k]] = 1
    shuffle_first(rest, u[start + w : start + length])
    for k in range(w, length):
        shown[k] = rest[k - w]
        b.counts[shown[k]] = 0
    shuffle_first(shown, u[K + start : K + start + length])


@njit_views
def begin(j, stage, b):
    """Batch j begins a stage."""
    b.stage[j], b.shown[j], b.waiting[j] = stage, 0, b.size[j]
    for i in range(b.first[j], b.first[j] + b.size[j]):
        b.clicks[b.items[i]] = 0


@njit_views
def split(j, s, b):
    """The first s items and positions of batch j, and the others behind it."""
    for i in range(b.number[0], j, -1):
        for field in (b.first, b.size, b.waiting, b.shown, b.stage, b.start, b.length):
            field[i] = field[i - 1]
    b.number[0] += 1
    for field in (b.first, b.start):
        field[j + 1] += s
    for field in (b.size, b.length):
        field[j], field[j + 1] = s, field[j + 1] - s
    begin(j, ZERO, b)
    begin(j + 1, ZERO, b)


@njit_views
def end_stage(j, budget, b):
    """Split batch j, or drop items; whether it was split."""
    items = b.items[b.first[j] : b.first[j] + b.size[j]]
    n, length = b.shown[j], b.length[j]
    for k in range(items.shape[0]):
        i = items[k]
        p = b.clicks[i] / n
        b.U[i], b.Lo[i] = kl_upper(p, budget / n), kl_lower(p, budget / n)
    sort_by(b.Lo, items)
    largest = -1.0
    for k in range(items.shape[0] - 1, 0, -1):
        largest = max(largest, b.U[items[k]])
        if k < length and b.Lo[items[k - 1]] > largest:
            split(j, k, b)
            return True
    bar, size = b.Lo[items[length - 1]], 0
    for k in range(items.shape[0]):
        if b.U[items[k]] >= bar:
            items[size] = items[k]
            size += 1
    b.size[j] = size
    begin(j, b.stage[j] + 1, b)
    return False


@njit_inline
def recommend_one(now, u, b, A):
    """All batches show their items."""
    for j in range(b.number[0]):
        display(j, u, b, b.places.held)
    show(b.places.held, b.places.order, A)


@njit_inline
def learn_one(now, b, A, clicks):
    """Count the clicks, and end the stages that are complete."""
    (log_n, budget), (_, held, c) = now, b.places
    read(A, clicks, b.places)
    for k in range(held.shape[0]):
        if b.counts[held[k]]:
            b.clicks[held[k]] += c[k]
    j = ZERO
    while j < b.number[0]:
        if b.waiting[j] == 0:
            b.shown[j] += 1
            b.waiting[j] = b.size[j]
            if b.shown[j] == stage_length(b.stage[j], log_n):
                j += end_stage(j, budget, b)
        j += 1


class BatchRank(ByPlaces):
    """Batches of items that are split, stage by stage, where bounds allow."""

    NAME, PAPER = "BatchRank", "Zoghi et al., ICML 2017"
    KNOWS = f"horizon, {ORDER}"
    READS = "all clicks, per batch and stage"
    COST = "K; L at the end of a stage"
    FIGURE = 20
    KERNELS = Batches(), recommend_one, learn_one

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given, uniforms=2 * setting.K)
        batches = self.memory
        batches.items[:] = np.arange(int(max(setting.L)))
        batches.size[:, 0] = batches.waiting[:, 0] = setting.L
        batches.length[:, 0] = setting.K
        self.rule = math.log(setting.horizon), kl_budget(setting.horizon)
