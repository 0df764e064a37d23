# mypy: allow-untyped-defs
"""The contextual track: lists for items that have features (gl-cdcm).

A problem is a set of queries that take turns in blocks of rounds, or a synthetic one. Users are
those of a DCM: the reward of a list is 1 - prod_k (1 - v(k) w(a_k)), and the best list has the
k-th most attractive item at the k-th most terminating position.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit

from logeval import seeds
from logeval.arrays import Floats, Ints
from logeval.clicks.models import chain
from logeval.policies.contextual.rounds import Round, best_first_one
from logeval.tracks.contextual_worlds import World
from logeval.uniforms import Uniforms


@njit(cache=True, nogil=True)
def step_rows(A, u, w, v, clicks):
    """Clicks of one user per replica."""
    K = A.shape[1]
    w_k, stay_k = np.empty(K), np.empty(K)
    for r in range(A.shape[0]):
        for k in range(K):
            w_k[k], stay_k[k] = w[r, A[r, k]], 1.0 - v[r, k]
        chain.sample_one(w_k, stay_k, 1.0, u[r], clicks[r])


@njit(cache=True, nogil=True)
def reward_rows(A, w, v, out):
    """1 - prod_k (1 - v(k) w(a_k))."""
    for r in range(A.shape[0]):
        none = 1.0
        for k in range(A.shape[1]):
            none *= 1.0 - v[r, k] * w[r, A[r, k]]
        out[r] = 1.0 - none


@njit(cache=True, nogil=True)
def best_rows(w, order, taken, A):
    """The best lists."""
    for r in range(A.shape[0]):
        best_first_one(w[r], w[r], order[r], taken, A[r])


@dataclass(frozen=True)
class ContextualProblem:
    """Queries in turn, or a synthetic problem; ``world`` makes the rounds of its runs."""

    simulator: str
    query: str
    K: int
    world: Callable[[Sequence[np.random.Generator]], World]
    identity: tuple[bytes, ...] = field(repr=False, default=())  # what the checksum is of
    track: str = "contextual"
    reward: str = "satisfaction"

    @property
    def positions(self) -> int:
        """Number of positions."""
        return self.K

    def checksum(self) -> str:
        """Equal for equal problems."""
        digest = hashlib.sha256(f"{self.simulator} {self.query} {self.K}".encode())
        for part in self.identity:
            digest.update(part)
        return digest.hexdigest()[:16]


class ContextualEnvironment:
    """R runs of a problem; all policies meet the same contexts and users.

    What a round brings is made when a policy first asks for it, or when the lists are shown, and
    stays until the next round.
    """

    distinct = True

    def __init__(
        self,
        problems: Sequence[ContextualProblem],
        replicas: Sequence[tuple[int, int]],
        seed: int,
    ) -> None:
        self.problems, self.replicas, self.seed = list(problems), list(replicas), seed
        (self.problem,) = self.problems
        self.query = np.zeros(len(replicas), dtype=np.int64)
        R, self.K = len(replicas), self.problem.K
        self.world = self.problem.world([self._generator("contexts", r) for r in range(R)])
        self.limits = np.full((R, self.K), self.world.widest)
        self.best = np.zeros((R, self.K), dtype=np.int64)
        self.best_reward = np.zeros(R)
        self._uniforms = Uniforms([self._generator("environment", r) for r in range(R)], self.K)
        self._clicks = np.empty((R, self.K), dtype=np.int8)
        self._reward = np.empty(R)
        self._taken = np.empty(self.world.widest, dtype=np.bool_)
        self._t = self._shown = 0
        self.now: Round
        self.w: Floats
        self.v: Floats
        self.offers: Mapping[str, Any] = {"contexts": self, "best": self.best}

    # the capability ``contexts``
    @property
    def d(self) -> int:
        """Length of a context."""
        return self.world.d

    @property
    def M(self) -> int:
        """Rows of X."""
        return self.world.M

    @property
    def arms(self) -> int:
        """Items of all queries."""
        return self.world.arms

    @property
    def queries(self) -> int:
        """Number of queries."""
        return self.world.queries

    @property
    def widest(self) -> int:
        """Items of the largest ground set."""
        return self.world.widest

    @property
    def repeat(self) -> bool:
        """Whether contexts repeat."""
        return self.world.repeat

    def at(self, t: int) -> Round:
        """Round t: the present one, or the next."""
        if t == self._t:
            return self.now
        self.now, self.w, self.v, new = self.world.start(t)
        self._t = t
        if new:
            self.limits[:] = self.w.shape[1]
            best_rows(self.w, self.now.order, self._taken, self.best)
            reward_rows(self.best, self.w, self.v, self.best_reward)
        return self.now

    def step(self, A: Ints) -> Ints:
        """Show the lists A (R, K) to the next users; their clicks (R, K), reused by the next."""
        self._shown += 1
        self.at(self._shown)
        step_rows(A, self._uniforms.at(self._shown), self.w, self.v, self._clicks)
        return self._clicks

    def reward(self, A: Ints) -> Floats:
        """Expected reward of the lists A in the present round, (R,), reused by the next call."""
        reward_rows(A, self.w, self.v, self._reward)
        return self._reward

    def _generator(self, purpose: str, r: int) -> np.random.Generator:
        run = self.replicas[r][1]
        problem = self.problem
        return seeds.generator(self.seed, purpose, problem.simulator, problem.query, run)
