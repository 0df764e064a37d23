"""BubbleRank (Li et al., UAI 2019), Algorithm 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from logeval.policies.shared.options import positions
from logeval.running.arrays import Ints
from tests.references.replica import Replica


class BubbleRank:
    """A base list; of K uniforms, that of a pair is the one at its upper place."""

    def __init__(self, replica: Replica) -> None:
        L, self.positions = replica.L, positions(replica.given.order, replica.K)
        self.base = replica.ask("base_list")[self.positions].tolist()
        self.log_delta = 4 * np.log(replica.n)  # log(1 / delta)
        self.uniforms = replica.uniforms(replica.K)
        self.s, self.m = np.zeros((L, L)), np.zeros((L, L))

    def sure(self, i: Any, j: Any) -> Any:
        """Whether i is surely better than j."""
        return self.s[i, j] > 2 * np.sqrt(self.m[i, j] * self.log_delta)

    def pairs(self, t: int) -> Any:
        """The upper places of the pairs of this round."""
        return range(t % 2, len(self.base) - 1, 2)

    def recommend(self, t: int) -> Ints:
        """The base list with doubtful neighbours in random order."""
        A, u = list(self.base), self.uniforms.at(t)[0]
        for k in self.pairs(t):
            if not self.sure(A[k], A[k + 1]) and u[k] < 0.5:
                A[k], A[k + 1] = A[k + 1], A[k]
        shown = np.empty(len(A), dtype=np.int64)
        shown[self.positions] = A
        return shown

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Count the pairs, and let the better ones rise for good."""
        A, clicks = A[self.positions], np.asarray(clicks)[self.positions]
        for k in self.pairs(t):
            i, j, gain = A[k], A[k + 1], int(clicks[k]) - int(clicks[k + 1])
            self.s[i, j] += gain
            self.s[j, i] -= gain
            self.m[i, j] += abs(gain)
            self.m[j, i] += abs(gain)
        R = self.base
        for k in range(len(R) - 1):
            if self.sure(R[k + 1], R[k]):
                R[k], R[k + 1] = R[k + 1], R[k]
