# mypy: allow-untyped-defs
"""The loop: a policy meets an environment, for all replicas in step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numba import njit

from logeval.arrays import Floats, Ints
from logeval.errors import LogevalError
from logeval.policies.setting import Eliminating, Policy, Setting

TICK = 256  # steps between two reports of progress
TOLERANCE = 1e-9  # rewards closer than this are equal


class Environment(Protocol):
    """What the loop needs of an environment; an action is a row of A."""

    best_reward: Floats
    pair_best: Floats | None  # the reward of the best pair, where lists are judged by it as well

    def step(self, A: Ints) -> Ints:
        """The clicks on A."""

    def reward(self, A: Ints) -> Floats:
        """The expected reward of A."""

    def pair_reward(self, A: Ints) -> Floats:
        """The expected reward of the most examined pair of A; only if there is a pair_best."""


@njit(cache=True, nogil=True)
def add_rows(best, reward, clicks, regrets, rewards, n_clicks, optimal, lowest):
    """Add a step to the totals of each replica."""
    for r in range(best.shape[0]):
        regret = best[r] - reward[r]
        lowest[r] = min(lowest[r], regret)
        regrets[r] += max(regret, 0.0)
        rewards[r] += reward[r]
        optimal[r] += regret <= TOLERANCE
        for k in range(clicks.shape[1]):
            n_clicks[r] += clicks[r, k]


class Totals:
    """Cumulative sums of all replicas, copied at checkpoints."""

    def __init__(
        self, best: Floats, checkpoints: Sequence[int], pair_best: Floats | None = None
    ) -> None:
        R, n = len(best), len(checkpoints)
        self.best, self.pair_best = best, pair_best
        self.checkpoints = np.array(checkpoints, dtype=np.int64)
        self._regret, self._reward = np.zeros(R), np.zeros(R)
        self._clicks, self._optimal = np.zeros(R, dtype=np.int64), np.zeros(R, dtype=np.int64)
        self._lowest = np.zeros(R)
        self.regret, self.reward = np.empty((R, n)), np.empty((R, n))
        self.clicks = np.empty((R, n), dtype=np.int64)
        self.optimal_steps = np.empty((R, n), dtype=np.int64)
        self._pair_regret, self.pair_regret = np.zeros(R), np.full((R, n), np.nan)
        self.left = np.full((R, n, 2), np.nan)  # rows and columns not eliminated
        self._filled = 0

    def add(self, reward: Floats, clicks: Ints) -> None:
        """One step: the expected rewards (R,) and the clicks (R, K)."""
        add_rows(
            self.best, reward, clicks, self._regret, self._reward, self._clicks, self._optimal,
            self._lowest,
        )  # fmt: skip

    def add_pair(self, reward: Floats) -> None:
        """One step: the expected rewards (R,) of the most examined pairs."""
        if self.pair_best is not None:
            self._pair_regret += self.pair_best - reward

    def record(self, policy: Policy) -> None:
        """Copy the totals, and what the policy has left, into the next checkpoint."""
        i = self._filled
        self.regret[:, i], self.reward[:, i] = self._regret, self._reward
        self.clicks[:, i], self.optimal_steps[:, i] = self._clicks, self._optimal
        if self.pair_best is not None:
            self.pair_regret[:, i] = self._pair_regret
        if isinstance(policy, Eliminating):
            self.left[:, i] = policy.remaining()
        self._filled += 1

    def better_than_best(self) -> Ints:
        """Replicas in which a list had more reward than the "best" one."""
        return np.flatnonzero(self._lowest < -TOLERANCE)


def run(
    environment: Environment,
    policy: Policy,
    checkpoints: Sequence[int],
    tick: Callable[[int], None] = lambda steps: None,
) -> Totals:
    """Run the policy until the last checkpoint; ``tick`` hears how many steps were done."""
    totals = Totals(environment.best_reward, checkpoints, environment.pair_best)
    source = policy.policy if isinstance(policy, CheckedPolicy) else policy
    pending = list(checkpoints)
    for t in range(1, checkpoints[-1] + 1):
        A = policy.recommend(t)
        clicks = environment.step(A)
        totals.add(environment.reward(A), clicks)
        if environment.pair_best is not None:
            totals.add_pair(environment.pair_reward(A))
        policy.update(t, A, clicks)
        if t == pending[0]:
            totals.record(source)
            pending.pop(0)
        if t % TICK == 0:
            tick(TICK)
    tick(checkpoints[-1] % TICK)
    return totals


class CheckedPolicy:
    """A user's policy whose actions are checked before the compiled code indexes with them.

    The places of a list have the same items, which must differ; those of a pair do not.
    """

    def __init__(self, policy: Policy, name: str, setting: Setting) -> None:
        self.policy, self.name = policy, name
        self.limits, self.distinct = setting.limits, setting.distinct

    def recommend(self, t: int) -> Ints:
        """The policy's lists, as int64."""
        A = np.asarray(self.policy.recommend(t))
        if A.shape != self.limits.shape or A.dtype.kind not in "iu":
            raise LogevalError(
                f"policy {self.name}: recommend must return integers of shape "
                f"{self.limits.shape}, not {A.dtype} of shape {A.shape}"
            )
        wrong = ((A < 0) | (A >= self.limits)).any(axis=1)
        if self.distinct:
            ordered = np.sort(A, axis=1)
            wrong |= (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        if wrong.any():
            r = int(np.argmax(wrong))
            different = "different " if self.distinct else ""
            raise LogevalError(
                f"policy {self.name}: at step {t} the choice {A[r].tolist()} of replica {r} must "
                f"hold {different}numbers from 0 to {(self.limits[r] - 1).tolist()}"
            )
        return np.array(A, dtype=np.int64, order="C")  # a copy: the policy may write on its own

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Pass the clicks on."""
        self.policy.update(t, A.copy(), clicks.copy())
