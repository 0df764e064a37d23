"""BatchRank (Zoghi et al., ICML 2017), Algorithms 1 to 4."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from logeval.running.arrays import Floats, Ints
from tests.references.bounds import budget_at, kl_lcb, kl_ucb
from tests.references.lists import Places, shuffle_first
from tests.references.replica import Replica


class Batch:
    """Neighbouring positions and items; ``waiting`` have one observation less than ``rest``."""

    def __init__(self, positions: Any, items: Any, stage: int = 0) -> None:
        self.positions, self.stage = positions, stage
        self.waiting: list[Any] = list(items)
        self.rest: list[Any] = []
        self.n, self.clicks = 0, dict.fromkeys(items, 0)  # observations of those that wait

    def display(self, u: Floats, v: Any) -> Any:
        """The least shown items in random order."""
        picked, old = [], self.rest
        for x in u:
            if not self.waiting:
                break
            i = int(x * len(self.waiting))
            self.waiting[i], self.waiting[-1] = self.waiting[-1], self.waiting[i]
            picked.append(self.waiting.pop())
        shuffle_first(old, u[len(picked) :])
        self.counted = set(picked)
        self.rest = picked[::-1] + old
        shown = picked + old[: len(u) - len(picked)]
        shuffle_first(shown, v)
        return shown

    def collect(self, shown: Any, clicks: Ints) -> Any:
        """Count the clicks on the least shown; when none waits, all do again."""
        for item, click in zip(shown, clicks, strict=True):
            if item in self.counted:
                self.clicks[item] += int(click)
        if not self.waiting:
            self.waiting, self.rest = self.rest, []
            self.n += 1

    def end_stage(self, b: Any) -> Any:
        """This batch at its next stage, or two."""
        items, length = sorted(self.waiting), len(self.positions)
        p = np.array([self.clicks[i] / self.n for i in items])
        U, Lo = kl_ucb(p, self.n, b), kl_lcb(p, self.n, b)
        order = np.argsort(-Lo, kind="stable")
        items, U, Lo = [items[i] for i in order], U[order], Lo[order]
        splits = [k for k in range(1, length) if Lo[k - 1] > U[k:].max()]
        if splits:
            s = splits[-1]
            return [Batch(self.positions[:s], items[:s]), Batch(self.positions[s:], items[s:])]
        kept = [i for i, upper in zip(items, U, strict=True) if upper >= Lo[length - 1]]
        return [Batch(self.positions, kept, self.stage + 1)]


class BatchRank(Places):
    """``u`` are 2 K uniforms."""

    def __init__(self, replica: Replica) -> None:
        super().__init__(replica, uniforms=2 * replica.K)
        self.batches = [Batch(list(range(self.K)), list(range(self.L)))]

    def choose(self, t: int, u: Floats) -> Any:
        """Every batch shows its least shown items."""
        A = np.empty(self.K, dtype=int)
        for batch in self.batches:
            k = batch.positions
            A[k] = batch.display(u[k], u[self.K + np.array(k)])
        return A

    def learn(self, t: int, A: Ints, clicks: Ints) -> Any:
        """Count, and end the stages that are complete."""
        after: list[Any] = []
        for batch in self.batches:
            k, n = batch.positions, batch.n
            batch.collect(A[k].tolist(), np.asarray(clicks)[k])
            length = math.ceil(16 * 4**batch.stage * math.log(self.n))
            done = batch.n > n and batch.n == length
            after += batch.end_stage(budget_at(self.n)) if done else [batch]
        self.batches = after
