"""TopRank (Lattimore et al., NeurIPS 2018), Algorithm 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from logeval.running.arrays import Floats, Ints
from tests.references.lists import Places, compare, displayed, peel, shuffle_first
from tests.references.replica import Replica


class TopRank(Places):
    """Blocks of items; ``u`` are K uniforms."""

    c = 4 * math.sqrt(2 / math.pi) / math.erf(math.sqrt(2))

    def __init__(self, replica: Replica) -> None:
        super().__init__(replica, uniforms=replica.K)
        L = self.L
        self.S, self.N = np.zeros((L, L)), np.zeros((L, L))
        self.beats = np.zeros((L, L), dtype=bool)
        self.blocks = [np.arange(L)]

    def choose(self, t: int, u: Floats) -> Any:
        """Blocks one after another, each in random order."""
        for start, block in displayed(self.blocks, self.K):
            shuffle_first(block, u[start:])
        return np.concatenate(self.blocks)[: self.K]

    def learn(self, t: int, A: Ints, clicks: Ints) -> Any:
        """Count differing clicks within blocks; split where an order is sure."""
        compare(self.blocks, A, clicks, self.S, self.N)
        N = np.maximum(self.N, 1)
        sure = (self.N > 0) & (self.S >= np.sqrt(2 * N * np.log(self.c * self.n * np.sqrt(N))))
        if (sure & ~self.beats).any():
            self.beats |= sure
            self.blocks = peel(self.beats)
