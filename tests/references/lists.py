"""References that fill a list place by place and break ties at random; blocks of a relation.

They work with places, the best item at place 0; here places become positions. ``choose`` and
``learn`` are the pseudocode.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from logeval.policies.shared.options import positions
from logeval.running.arrays import Floats, Ints
from tests.references.replica import Replica


class Places:
    """One replica; ``u`` are the uniforms of a step."""

    choose: Any  # (t, u): the labels of the list, best place first
    learn: Any  # (t, labels, clicks)

    def __init__(self, replica: Replica, uniforms: int = 0) -> None:
        self.given, self.K, self.L, self.n = replica.given, replica.K, replica.L, replica.n
        self.positions = positions(getattr(self.given, "order", "descending"), self.K)
        self.uniforms = replica.uniforms(uniforms)

    def recommend(self, t: int) -> Ints:
        """The list of step t."""
        A = np.empty(self.K, dtype=np.int64)
        A[self.positions] = self.choose(t, self.uniforms.at(t)[0])
        return A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """The clicks on A."""
        self.learn(t, A[self.positions], np.asarray(clicks)[self.positions])


class Cells(Places):
    """Clicks S and views N of items at positions."""

    def __init__(self, replica: Replica, uniforms: int = 0) -> None:
        super().__init__(replica, uniforms)
        self.S, self.N = np.zeros((self.L, self.K)), np.zeros((self.L, self.K))

    def learn(self, t: int, A: Ints, clicks: Ints) -> None:
        """Count."""
        k = np.arange(self.K)
        self.S[A, k] += clicks
        self.N[A, k] += 1

    def rho(self) -> Any:
        """Mean clicks; 0 where unseen."""
        return np.divide(self.S, self.N, out=np.zeros_like(self.S), where=self.N > 0)


def compare(blocks: Any, A: Ints, clicks: Ints, S: Floats, N: Floats) -> None:
    """Add C_i - C_j to S_ij and |C_i - C_j| to N_ij for the items of each block that is shown."""
    C = np.zeros(len(S))
    C[A] = clicks
    for _, block in displayed(blocks, len(A)):
        pairs = np.ix_(block, block)
        U = C[block][:, None] - C[block][None, :]
        S[pairs] += U
        N[pairs] += np.abs(U)


def peel(beats: Any) -> Any:
    """Ordered blocks: again and again the items that none of those left beats."""
    left, blocks = np.arange(len(beats)), []
    while len(left):
        unbeaten = left[~beats[np.ix_(left, left)].any(axis=0)]
        blocks.append(unbeaten if len(unbeaten) else left)
        left = np.setdiff1d(left, blocks[-1])
    return blocks


def shuffle_first(pool: Any, u: Floats) -> Any:
    """Shuffle the first len(u) places of the pool, in place (Fisher and Yates)."""
    for k in range(min(len(pool), len(u))):
        j = k + int(u[k] * (len(pool) - k))
        pool[k], pool[j] = pool[j], pool[k]


def displayed(blocks: Any, K: int) -> Any:
    """(first place, block) of the blocks that start before K."""
    start, shown = 0, []
    for block in blocks:
        if start < K:
            shown.append((start, block))
        start += len(block)
    return shown
