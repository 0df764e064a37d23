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
from typing import ClassVar, NamedTuple

import numpy as np

from logeval.policies.batchrank import paper
from logeval.policies.setting import Setting
from logeval.policies.shared.bounds import kl_budget, kl_lower, kl_upper
from logeval.policies.shared.lazy_topk import plain
from logeval.policies.shared.places import Places, places, read, show
from logeval.policies.shared.positions import ORDER
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import ZERO, njit_inline, njit_views
from logeval.running.uniforms import Uniforms


class Batches(NamedTuple):
    """The batches in order of their positions, of all replicas or of one."""

    number: Ints  # (1,) of batches
    items: Ints  # (L,) batch after batch; those that wait come first
    clicks: Ints  # (L,) of each item in this stage
    first: Ints  # (K,) where the items of each batch start
    size: Ints  # (K,) how many they are
    waiting: Ints  # (K,) how many of them wait
    shown: Ints  # (K,) observations of those that wait
    stage: Ints  # (K,)
    start: Ints  # (K + 1,) first position; the next batch starts behind the last
    counts: Ints  # (K,) whether a click at this position counts
    U: Floats  # (L,) bounds of each item at the end of a stage
    Lo: Floats  # (L,)


@njit_views
def stage_length(stage, log_n):
    """n_l = ceil(16 4^l log n)."""
    return math.ceil(16.0 * 4.0**stage * log_n)


@njit_views
def display(j, u, b, held):
    """Batch j shows its least shown items; u are two uniforms per position."""
    first, start, length = b.first[j], b.start[j], b.start[j + 1] - b.start[j]
    items, w = b.items[first : first + b.size[j]], b.waiting[j]
    rest = items[w:]
    for k in range(length):
        x = u[start + k]
        if b.waiting[j] > 0:
            i = min(int(x * b.waiting[j]), b.waiting[j] - 1)
            b.waiting[j] -= 1
            last = b.waiting[j]
            items[i], items[last] = items[last], items[i]
            held[start + k] = items[last]
        else:
            m = k - w
            i = min(m + int(x * (rest.shape[0] - m)), rest.shape[0] - 1)
            rest[m], rest[i] = rest[i], rest[m]
            held[start + k] = rest[m]
        b.counts[start + k] = k < w
    for k in range(length):
        i = min(k + int(u[held.shape[0] + start + k] * (length - k)), length - 1)
        x, y = start + k, start + i
        held[x], held[y] = held[y], held[x]
        b.counts[x], b.counts[y] = b.counts[y], b.counts[x]


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
        b.first[i], b.size[i], b.waiting[i] = b.first[i - 1], b.size[i - 1], b.waiting[i - 1]
        b.shown[i], b.stage[i], b.start[i + 1] = b.shown[i - 1], b.stage[i - 1], b.start[i]
    b.number[0] += 1
    b.start[j + 1] = b.start[j] + s
    b.first[j + 1], b.size[j + 1] = b.first[j] + s, b.size[j] - s
    b.size[j] = s
    begin(j, ZERO, b)
    begin(j + 1, ZERO, b)


@njit_views
def sort_by_Lo(items, Lo):
    """By decreasing Lo, equal ones by label."""
    for k in range(items.shape[0]):
        i, j = items[k], k
        while j > 0:
            other = items[j - 1]
            if Lo[other] > Lo[i] or (Lo[other] == Lo[i] and other < i):
                break
            items[j] = other
            j -= 1
        items[j] = i


@njit_views
def end_stage(j, budget, b):
    """Split batch j, or drop items; whether it was split."""
    items = b.items[b.first[j] : b.first[j] + b.size[j]]
    n, length = b.shown[j], b.start[j + 1] - b.start[j]
    for k in range(items.shape[0]):
        i = items[k]
        p = b.clicks[i] / n
        b.U[i], b.Lo[i] = kl_upper(p, budget / n), kl_lower(p, budget / n)
    sort_by_Lo(items, b.Lo)
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


@njit_views
def recommend_one(u, b, held):
    """All batches show their items."""
    for j in range(b.number[0]):
        display(j, u, b, held)


@njit_views
def update_one(log_n, budget, b, held, c):
    """Count the clicks, and end the stages that are complete."""
    for k in range(held.shape[0]):
        if b.counts[k]:
            b.clicks[held[k]] += c[k]
    j = ZERO
    while j < b.number[0]:
        if b.waiting[j] == 0:
            b.shown[j] += 1
            b.waiting[j] = b.size[j]
            if b.shown[j] == stage_length(b.stage[j], log_n):
                j += end_stage(j, budget, b)
        j += 1


@njit_inline
def batches_of(r, b):
    """Those of replica r."""
    return Batches(
        b.number[r], b.items[r], b.clicks[r], b.first[r], b.size[r], b.waiting[r], b.shown[r],
        b.stage[r], b.start[r], b.counts[r], b.U[r], b.Lo[r],
    )  # fmt: skip


@njit_views
def recommend_all(u, held, A, places, b):
    """``recommend_one`` for each replica."""
    places, b = Places(*places), Batches(*b)
    for r in range(A.shape[0]):
        recommend_one(u[r], batches_of(r, b), held)
        show(held, places.order, A[r])


@njit_views
def update_all(A, clicks, log_n, budget, held, c, places, b):
    """``update_one`` for each replica."""
    places, b = Places(*places), Batches(*b)
    for r in range(A.shape[0]):
        read(A[r], clicks[r], places.order, held, c)
        update_one(log_n, budget, batches_of(r, b), held, c)


class BatchRank:
    """BatchRank; ``order`` lists the positions from the most to the least examined."""

    NAME, PAPER = "BatchRank", "Zoghi et al., ICML 2017"
    KNOWS = f"horizon, {ORDER}"
    READS = "all clicks, per batch and stage"
    COST = "K; L at the end of a stage"
    REFERENCE, FIGURE = paper.BatchRank, 20
    PARAMETERS: ClassVar = {"order": str}

    def __init__(self, setting: Setting, *, order: str = "descending") -> None:
        R, K, L = setting.R, setting.K, int(max(setting.L))
        self._places = places(setting, order)
        per_batch = [np.zeros((R, K), dtype=np.int64) for _ in range(6)]
        start = np.zeros((R, K + 1), dtype=np.int64)
        start[:, 1] = K
        first, size, waiting, shown, stage, counts = per_batch
        size[:, 0] = waiting[:, 0] = setting.L
        self._batches = Batches(
            np.ones((R, 1), dtype=np.int64), np.tile(np.arange(L), (R, 1)),
            np.zeros((R, L), dtype=np.int64), first, size, waiting, shown, stage, start, counts,
            np.zeros((R, L)), np.zeros((R, L)),
        )  # fmt: skip
        self._state = plain(self._places, self._batches)
        self._log_n, self._budget = math.log(setting.horizon), kl_budget(setting.horizon)
        self._uniforms = Uniforms(setting.generators, 2 * K)
        self._held, self._c = np.empty(K, dtype=np.int64), np.empty(K, dtype=np.int64)
        self._A = np.empty((R, K), dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        recommend_all(self._uniforms.at(t), self._held, self._A, *self._state)
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks on the lists A, the last ones recommended."""
        update_all(A, clicks, self._log_n, self._budget, self._held, self._c, *self._state)
