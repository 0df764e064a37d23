"""UniRank (Gauthier, Gaudel, Fromont: UniRank, ICML 2022)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from logeval.running.arrays import Floats, Ints
from tests.references.bounds import kl_index_at
from tests.references.lists import Places, compare, displayed, peel, shuffle_first
from tests.references.replica import Replica


class UniRank(Places):
    """A leading partition and its neighbours; ``u`` are K uniforms."""

    def __init__(self, replica: Replica) -> None:
        super().__init__(replica, uniforms=replica.K)
        L = self.L
        self.S, self.T = np.zeros((L, L)), np.zeros((L, L))
        self.tau: Counter[Any] = Counter()  # how often each partition was the leader

    def leader(self, t: int) -> Any:
        """The partition that the estimates say, S_ij < 0 if j is better than i."""
        beats = self.S > 0
        if self.given.optimism == "loglog":
            beats &= self.S**2 > self.T * np.log(np.log(t + 3))
        return peel(beats)

    def choose(self, t: int, u: Floats) -> Any:
        """The most promising neighbour of the leader, or the leader."""
        leader = self.leader(t)
        block_of = np.empty(self.L, dtype=int)
        for b, block in enumerate(leader):
            block_of[block] = b
        self.tau[tuple(block_of)] += 1
        tau = self.tau[tuple(block_of)]
        with np.errstate(invalid="ignore"):
            s = np.where(self.T > 0, self.S / self.T, 0.0)
        f = kl_index_at(tau, (1 + s) / 2, self.T)  # f[j, i]: how much better j may be than i
        d = len(displayed(leader, self.K)) - 1
        best, played = 0.5, leader
        for b in range(d):
            score = f[np.ix_(leader[b + 1], leader[b])].max()
            if score > best:
                merged = np.concatenate([leader[b], leader[b + 1]])
                best, played = score, [*leader[:b], merged, *leader[b + 2 :]]
        for j in np.concatenate([*leader[d + 1 :], np.empty(0, dtype=int)]):
            score = f[j, leader[d]].max()
            if score > best:
                best, played = score, [*leader[:d], np.append(leader[d], j)]
        self.played = [block.copy() for block in played]
        for start, block in displayed(self.played, self.K):
            shuffle_first(block, u[start:])
        return np.concatenate(self.played)[: self.K]

    def learn(self, t: int, A: Ints, clicks: Ints) -> Any:
        """Count differing clicks within the blocks played."""
        compare(self.played, A, clicks, self.S, self.T)
