"""The contextual track: lists for items that have features (gl-cdcm).

A problem is a set of queries that take turns in blocks of rounds, or a synthetic one. Users are
those of a DCM: the reward of a list is 1 - prod_k (1 - v(k) w(a_k)), and the best list has the
k-th most attractive item at the k-th most terminating position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from logeval.clicks.models import chain
from logeval.errors import LogevalError
from logeval.policies.contextual.rounds import Round, best_first_one
from logeval.policies.setting import Policy
from logeval.running import seeds
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_views
from logeval.running.uniforms import Uniforms
from logeval.tracks.contextual_problems import ContextualProblem, parse_contextual
from logeval.tracks.contextual_worlds import Users
from logeval.tracks.fitted import FittedQuery
from logeval.tracks.meters import Meter, Regret
from logeval.tracks.track import Replicas, Reward, Track


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


@njit_views
def best_rows(w, order, top, A):
    """The best lists."""
    for r in range(A.shape[0]):
        best_first_one(w[r], w[r], order[r], top, A[r])


class ContextualEnvironment:
    """R runs of a problem; all policies meet the same contexts and users.

    What a round brings is made when a policy first asks for it, or when the lists are shown, and
    stays until the next round.
    """

    distinct = True

    def __init__(
        self,
        problems: Sequence[ContextualProblem],
        replicas: Replicas,
        seed: int,
    ) -> None:
        self.problems, self.replicas, self.seed = list(problems), list(replicas), seed
        (self.problem,) = self.problems
        self.query = np.zeros(len(replicas), dtype=np.int64)
        R, self.K = len(replicas), self.problem.K
        # all runs share the rows of X, so the random order of these depends on no run
        rows = seeds.generator(seed, "labels", "contextual", self.problem.simulator)
        self.world = self.problem.world([self._generator("contexts", r) for r in range(R)], rows)
        self.limits = np.full((R, self.K), self.world.widest)
        self.best = np.zeros((R, self.K), dtype=np.int64)
        self.best_reward = np.zeros(R)
        self._uniforms = Uniforms([self._generator("environment", r) for r in range(R)], self.K)
        self._clicks = np.empty((R, self.K), dtype=np.int8)
        self._reward = np.empty(R)
        self._top = np.empty(self.K, dtype=np.int64)
        self._w_k, self._stay_k = np.empty(self.K), np.empty(self.K)
        self._t = self._shown = 0
        self.now: Round
        self.w: Floats
        self.v: Floats
        self.offers: Mapping[str, Any] = {
            "contexts": self,
            "best": self.best,
            "common": self.common,
        }

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
            best_rows(self.w, self.now.order, self._top, self.best)
            reward_rows(self.best, self.w, self.v, self.best_reward)
        return self.now

    def common(self) -> Floats:
        """The mean attraction over all users of the items of the present round, (R, L)."""
        return self.world.common(self.now) if isinstance(self.world, Users) else self.w

    def step(self, A: Ints) -> Ints:
        """Show the lists A (R, K) to the next users; their clicks (R, K), reused by the next."""
        self._shown += 1
        self.at(self._shown)
        u = self._uniforms.at(self._shown)
        step_rows(A, u, self.w, self.v, self._w_k, self._stay_k, self._clicks)
        return self._clicks

    def reward(self, A: Ints) -> Floats:
        """Expected reward of the lists A in the present round, (R,), reused by the next call."""
        reward_rows(A, self.w, self.v, self._reward)
        return self._reward

    def _generator(self, purpose: str, r: int) -> np.random.Generator:
        run = self.replicas[r][1]
        problem = self.problem
        return seeds.generator(self.seed, purpose, problem.simulator, problem.query, run)


class RegretInTurn(Regret):
    """The regret where the best list, and so its reward, changes from round to round."""

    def columns(self) -> dict[str, Floats | Ints]:
        """Those of ``Regret``; the optimal reward is what was earned and what was missed."""
        own = super().columns()
        return {**own, "optimal_reward": own["regret"] + own["reward"]}


@runtime_checkable
class Estimating(Protocol):
    """A policy that estimates theta."""

    @property
    def theta(self) -> Floats:
        """(R, d)."""


class CosineDistance(Meter):
    """1 - theta_hat . theta / (|theta_hat| |theta|) (gl-cdcm, section 4.1); 1 before any click."""

    def __init__(
        self, environment: ContextualEnvironment, policy: Policy, checkpoints: Sequence[int]
    ) -> None:
        assert isinstance(policy, Estimating)
        assert environment.world.theta is not None
        self._policy, self._theta = policy, environment.world.theta
        self._kept = np.empty((len(self._theta), len(checkpoints)))

    @classmethod
    def fits(cls, environment: ContextualEnvironment, policy: Policy) -> bool:
        """Whether there is a truth, and an estimate of it."""
        return environment.world.theta is not None and isinstance(policy, Estimating)

    def record(self, i: int) -> None:
        """Checkpoint i."""
        estimate, truth = self._policy.theta, self._theta
        length = np.linalg.norm(estimate, axis=1) * np.linalg.norm(truth, axis=1)
        product = (estimate * truth).sum(axis=1)
        self._kept[:, i] = 1.0 - np.divide(
            product, length, out=np.zeros(len(length)), where=length > 0.0
        )

    def columns(self) -> dict[str, Floats | Ints]:
        """The distance."""
        return {"cosine_distance": self._kept}


def _needs_features(fitted: Sequence[FittedQuery], reward: str | None) -> list[ContextualProblem]:
    raise LogevalError(
        "the contextual track needs features of the items; make some with `logeval features` and "
        "give their folder as features"
    )


CONTEXTUAL = Track(
    name="contextual",
    rewards=(Reward("list", "the list", "regret", "optimal_reward", "-"),),
    meters=(RegretInTurn, CosineDistance),
    environment=ContextualEnvironment,
    problems=_needs_features,
    synthetic={"contextual": parse_contextual},
)
