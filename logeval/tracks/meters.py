"""What is measured while a policy runs: small classes, each with its columns of the runs table.

A meter hears every step of all replicas and keeps totals; at a checkpoint they are copied. A track
names its meters, and each says whether it fits the environment and the policy at hand: columns
that nobody measured are null.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from logeval.errors import LogevalError
from logeval.policies.setting import Eliminating, Policy
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_views

if TYPE_CHECKING:
    from logeval.tracks.track import Environment, Simulation

TOLERANCE = 1e-9  # rewards closer than this are equal
REGRET, REWARD, OPTIMAL_STEPS, LOWEST, CLICKS, EXPECTED = range(6)  # totals of ``Regret``


class Meter(ABC):
    """The interface of a meter; what it does not override does nothing."""

    @abstractmethod
    def __init__(self, environment: Any, policy: Policy, checkpoints: Sequence[int]) -> None: ...

    @classmethod
    def fits(cls, environment: Any, policy: Policy) -> bool:
        """Whether there is something to measure."""
        return True

    def add(self, t: int, A: Ints, clicks: Ints) -> None:  # noqa: B027
        """Step t: the actions A (R, W) and their clicks."""

    @abstractmethod
    def record(self, i: int) -> None:
        """Keep the totals for checkpoint i; the policy has learned from the step."""

    @abstractmethod
    def columns(self) -> dict[str, Floats | Ints]:
        """(R, number of checkpoints) each, by name."""


class Meters:
    """The meters of a run."""

    def __init__(
        self,
        kinds: Sequence[type[Meter]],
        environment: Environment,
        policy: Policy,
        checkpoints: Sequence[int],
    ) -> None:
        self._meters = [
            kind(environment, policy, checkpoints)
            for kind in kinds
            if kind.fits(environment, policy)
        ]
        self._adds = [meter.add for meter in self._meters]
        self._recorded = 0

    def add(self, t: int, A: Ints, clicks: Ints) -> None:
        """Step t."""
        for add in self._adds:
            add(t, A, clicks)

    def record(self) -> None:
        """The next checkpoint."""
        for meter in self._meters:
            meter.record(self._recorded)
        self._recorded += 1

    def columns(self) -> dict[str, Floats | Ints]:
        """All columns, (R, number of checkpoints) each."""
        return {name: x for meter in self._meters for name, x in meter.columns().items()}


@njit_views
def add_step(best, reward, expected, clicks, totals):
    """Add a step to the totals of each replica."""
    for r in range(best.shape[0]):
        regret = best[r] - reward[r]
        totals[r, REGRET] += max(regret, 0.0)
        totals[r, REWARD] += reward[r]
        totals[r, OPTIMAL_STEPS] += regret <= TOLERANCE
        totals[r, LOWEST] = min(totals[r, LOWEST], regret)
        totals[r, EXPECTED] += expected[r]
        for k in range(clicks.shape[1]):
            totals[r, CLICKS] += clicks[r, k]


class Regret(Meter):
    """Expected regret, the reward of the best action minus that of the one shown; and clicks.

    One meter, because a call of a kernel costs as much as what it counts.
    """

    def __init__(self, environment: Simulation, policy: Policy, checkpoints: Sequence[int]) -> None:
        self._environment, self._best = environment, environment.best_reward
        self._checkpoints = np.array(checkpoints, dtype=np.int64)
        R = len(self._best)
        self._totals, self._kept = np.zeros((R, 6)), np.empty((R, len(checkpoints), 6))

    def add(self, t: int, A: Ints, clicks: Ints) -> None:
        """Step t."""
        reward = self._environment.reward(A)
        add_step(self._best, reward, self._environment.expected_clicks, clicks, self._totals)

    def record(self, i: int) -> None:
        """Checkpoint i."""
        self._kept[:, i] = self._totals

    def columns(self) -> dict[str, Floats | Ints]:
        """Regret, reward, the optimal reward, the steps without regret, clicks, expected ones."""
        better = np.flatnonzero(self._totals[:, LOWEST] < -TOLERANCE)
        if len(better):
            query = self._environment.mine[better[0]].key.drawn_query
            raise LogevalError(
                f"query {query}: a policy showed a list with more expected reward than the model's "
                "best_list; the optimum of this click model is wrong"
            )
        return {
            "regret": self._kept[:, :, REGRET],
            "reward": self._kept[:, :, REWARD],
            "optimal_reward": np.outer(self._best, self._checkpoints),
            "optimal_steps": self._kept[:, :, OPTIMAL_STEPS].astype(np.int64),
            "clicks": self._kept[:, :, CLICKS].astype(np.int64),
            "expected_clicks": self._kept[:, :, EXPECTED],
        }


class PairRegret(Regret):
    """The regret where an action is a pair: that of the pair as well."""

    def columns(self) -> dict[str, Floats | Ints]:
        """Those of ``Regret``, under both names."""
        own = super().columns()
        return {
            **own,
            "pair_regret": own["regret"],
            "pair_optimal_reward": own["optimal_reward"],
        }


class Left(Meter):
    """The rows and columns that a policy which eliminates has left."""

    def __init__(
        self, environment: Environment, policy: Policy, checkpoints: Sequence[int]
    ) -> None:
        assert isinstance(policy, Eliminating)
        self._policy: Eliminating = policy
        self._kept = np.empty((len(environment.limits), len(checkpoints), 2), dtype=np.int64)

    @classmethod
    def fits(cls, environment: Environment, policy: Policy) -> bool:
        """Whether the policy says what it has left."""
        return isinstance(policy, Eliminating)

    def record(self, i: int) -> None:
        """Checkpoint i."""
        self._kept[:, i] = self._policy.remaining()

    def columns(self) -> dict[str, Floats | Ints]:
        """Rows and columns."""
        return {"rows_left": self._kept[:, :, 0], "columns_left": self._kept[:, :, 1]}
