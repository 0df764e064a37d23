"""Random labels: what a policy calls the items of its replica.

Synthetic problems have their best items first, fitted models their most frequent ones. Every
environment therefore gives the items of every replica random labels, and speaks to policies in
labels only: no policy, built in or a user's, can gain from the order in which items are stored,
and a tie that is broken by label is broken at random. The labels depend on seed, simulator, query
and run, so all policies meet the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from logeval.running.arrays import Ints


class Labels:
    """The labels of R replicas, replica r with ``sizes[r]`` items, drawn from its generator."""

    def __init__(self, generators: Sequence[np.random.Generator], sizes: Ints) -> None:
        drawn = [g.permutation(n) for g, n in zip(generators, sizes, strict=True)]
        self.item = np.concatenate(drawn).astype(np.int64)  # of each label, replica after replica
        self._label = np.concatenate([np.argsort(items) for items in drawn])
        self.start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)  # of each replica

    def items_of(self, r: int) -> Ints:
        """The item of each label of replica r."""
        return self.item[self.start[r] : self.start[r + 1]]

    def labels_of(self, r: int, items: Ints) -> Ints:
        """The labels of some items of replica r."""
        labels: Ints = self._label[self.start[r] + items]
        return labels

    def items(self, labels: Ints) -> Ints:
        """The items behind the labels (R, W) of all replicas."""
        items: Ints = self.item[self.start[:-1, None] + labels]
        return items

    def labels(self, items: Ints) -> Ints:
        """The labels (R, W) of the items of all replicas."""
        labels: Ints = self._label[self.start[:-1, None] + items]
        return labels
