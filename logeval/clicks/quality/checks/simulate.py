"""Simulated clicks on the lists of one query, counted as the log's are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.models.model import ClickModel
from logeval.clicks.quality.checks.features import Layout, add_rows
from logeval.clicks.quality.scores import local_items
from logeval.running.arrays import Bools, Floats, Ints

BLOCK = 100_000  # simulated SERPs in memory at a time


@dataclass(frozen=True)
class Batch:
    """Lists of one query and of equal length, as local items of its model."""

    A: Ints  # (n, length)
    clicks: Bools  # (n, length)
    count: Floats  # (n,)
    top: Ints  # (n, length) place among the items shown most, or -1

    @classmethod
    def of(cls, data: Patterns, rows: Ints, K: int, model: ClickModel, top: Ints) -> Batch:
        """Some patterns of K results; items the model does not know are its last."""
        items = data.items[rows, :K]
        A = local_items(model.items, data.item_ids[items])
        return cls(A, data.clicks[rows, :K], data.count[rows], top[items])

    def serps(self) -> tuple[Ints, Ints]:
        """One row per SERP: lists, and places among the items shown most."""
        each = np.repeat(np.arange(len(self.count)), self.count.astype(np.int64))
        return self.A[each], self.top[each]


def observed_features(model: ClickModel, batches: list[Batch], layout: Layout) -> Floats:
    """The features of the log's clicks, (features,); the model only predicts the probabilities."""
    out = np.zeros((1, layout.size))
    for b in batches:
        q = model.conditional_click_probs(b.A, b.clicks)
        row = np.zeros(len(b.count), dtype=np.int64)
        add_rows(b.clicks.astype(np.int8), q, b.top, b.count, row, layout.at, layout.R, out)
    return out[0]


def replicates(
    model: ClickModel,
    users: Sequence[ClickModel],
    batches: list[Batch],
    layout: Layout,
    n: int,
    rng: np.random.Generator,
) -> Floats:
    """The features of n simulations of all SERPs of a query, (n, features).

    New users look at every list as often as the log shows it: in equally many simulations those of
    each of ``users``. The model only predicts the probabilities.
    """
    out = np.zeros((n, layout.size))
    shares = np.array_split(np.arange(n), len(users))
    for b in batches:
        A, top = b.serps()
        at_once = max(1, BLOCK // len(A))
        for clicking, mine in zip(users, shares, strict=True):
            for start in range(0, len(mine), at_once):
                simulations = mine[start : start + at_once]
                lists = np.tile(A, (len(simulations), 1))
                clicks = clicking.sample(lists, rng.random(lists.shape))
                q = model.conditional_click_probs(lists, clicks)
                row = np.repeat(simulations, len(A))
                add_rows(clicks, q, top, np.ones(len(lists)), row, layout.at, layout.R, out)
    return out
