"""The contextual track: lists for items that have features (gl-cdcm).

A problem is a set of queries that take turns in blocks of rounds, or a synthetic one. Users are
those of a DCM: the reward of a list is 1 - prod_k (1 - v(k) w(a_k)), and the best list has the
k-th most attractive item at the k-th most terminating position.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from logeval.clicks.models.users import chain
from logeval.policies.setting import Policy, Round
from logeval.running import seeds
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import best_first_rows, njit_views
from logeval.tracks.contextual.problems import (
    ContextualProblem,
    contextual_problems,
    parse_contextual,
    sorted_models,
)
from logeval.tracks.meters import Columns, Meter, Regret
from logeval.tracks.track import Replicas, Reward, Simulation, Track


@njit_views
def step_rows(A, u, w, v, w_k, stay_k, clicks):
    """Clicks of one user per replica."""
    for r in range(A.shape[0]):
        for k in range(A.shape[1]):
            w_k[k], stay_k[k] = w[r, A[r, k]], 1.0 - v[r, k]
        chain.sample_one(w_k, stay_k, 1.0, u[r], clicks[r])


@njit_views
def reward_rows(A, w, v, out):
    """1 - prod_k (1 - v(k) w(a_k))."""
    for r in range(A.shape[0]):
        none = 1.0
        for k in range(A.shape[1]):
            none *= 1.0 - v[r, k] * w[r, A[r, k]]
        out[r] = 1.0 - none


class ContextualEnvironment(Simulation):
    """R runs of a problem; all policies meet the same contexts and users.

    What a round brings is made when a policy first asks for it, or when the lists are shown, and
    stays until the next round. It is the capability ``contexts`` itself.
    """

    def __init__(
        self, problems: Sequence[ContextualProblem], replicas: Replicas, seed: int
    ) -> None:
        (problem,) = problems
        super().__init__(problems, replicas, seed, clicks=problem.K)
        R, self.K = len(replicas), problem.K
        # all runs share the rows of X, so the random order of these depends on no run
        rows = seeds.generator(seed, "labels", "contextual", problem.simulator)
        self.world = world = problem.world(self.generators("contexts"), rows)
        self.d, self.M, self.arms = world.d, world.M, world.arms
        self.queries, self.widest, self.repeat = world.queries, world.widest, world.repeat
        self.limits = np.full((R, self.K), world.widest)
        self.best = np.zeros((R, self.K), dtype=np.int64)
        self.best_reward = np.zeros(R)
        self._top = np.empty(self.K, dtype=np.int64)
        self._w_k, self._stay_k = np.empty(self.K), np.empty(self.K)
        self._round = 0
        self.now: Round
        self.w: Floats
        self.v: Floats
        self.offers = {"contexts": self, "best": self.best, "common": self.common}

    def at(self, t: int) -> Round:
        """Round t: the present one, or the next."""
        if t == self._round:
            return self.now
        self.now, self.w, self.v, new = self.world.start(t)
        self._round = t
        if new:
            self.limits[:] = self.w.shape[1]
            best_first_rows(self.w, self.w, self.now.order, self._top, self.best)
            reward_rows(self.best, self.w, self.v, self.best_reward)
        return self.now

    def common(self) -> Floats:
        """The mean attraction over all users of the items of the present round, (R, L)."""
        return self.world.common(self.now, self.w)

    def _click(self, A: Ints, u: Floats) -> None:
        self.at(self._t)
        step_rows(A, u, self.w, self.v, self._w_k, self._stay_k, self._clicks)

    def _earn(self, A: Ints) -> None:
        reward_rows(A, self.w, self.v, self._reward)


class RegretInTurn(Regret):
    """The regret where the best list, and so its reward, changes from round to round."""

    def columns(self, t: int) -> Columns:
        """Those of ``Regret``; the optimal reward is what was earned and what was missed."""
        own = super().columns(t)
        return own | {"optimal_reward": own["regret"] + own["reward"]}


@runtime_checkable
class Estimating(Protocol):
    """A policy that estimates theta."""

    @property
    def theta(self) -> Floats:
        """(R, d)."""


class CosineDistance(Meter):
    """1 - theta_hat . theta / (|theta_hat| |theta|) (gl-cdcm, section 4.1); 1 before any click."""

    @classmethod
    def fits(cls, environment: ContextualEnvironment, policy: Policy) -> bool:
        """Whether there is a truth, and an estimate of it."""
        return environment.world.theta is not None and isinstance(policy, Estimating)

    def columns(self, t: int) -> Columns:
        """The distance."""
        estimate, truth = self.policy.theta, self.environment.world.theta
        length = np.linalg.norm(estimate, axis=1) * np.linalg.norm(truth, axis=1)
        product = (estimate * truth).sum(axis=1)
        cosine = np.divide(product, length, out=np.zeros(len(length)), where=length > 0.0)
        return {"cosine_distance": 1.0 - cosine}


CONTEXTUAL = Track(
    name="contextual",
    rewards=(Reward("list", "the list", "regret", "optimal_reward", "-"),),
    meters=(RegretInTurn, CosineDistance),
    environment=ContextualEnvironment,
    usable=sorted_models,
    problems=contextual_problems,
    synthetic={"contextual": parse_contextual},
    features=True,
    counts=("satisfaction",),
)
