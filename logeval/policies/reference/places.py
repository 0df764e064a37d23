"""A reference that fills a list place by place and breaks ties at random.

It works with labels, a random renumbering of the items, and with places, the best item at place 0.
``choose`` and ``learn`` are the pseudocode; here labels become items, and places positions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from logeval.policies.ranking.cascade import positions
from logeval.policies.reference.replica import Replica
from logeval.running.arrays import Ints


class Places:
    """One replica; ``u`` are the uniforms of a step."""

    choose: Any  # (t, u): the labels of the list, best place first
    learn: Any  # (t, labels, clicks)

    def __init__(self, replica: Replica, order: str = "descending") -> None:
        self.K, self.L, self.n = replica.K, replica.L, replica.n
        self.items = np.arange(self.L)  # the environment has labelled them at random
        self.labels = np.argsort(self.items)
        self.positions = positions(order, self.K)
        self.uniforms: Any = None

    def recommend(self, t: int) -> Ints:
        """The list of step t."""
        A = np.empty(self.K, dtype=np.int64)
        u = None if self.uniforms is None else self.uniforms.at(t)[0]
        A[self.positions] = self.items[self.choose(t, u)]
        return A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """The clicks on A."""
        self.learn(t, self.labels[A[self.positions]], np.asarray(clicks)[self.positions])
