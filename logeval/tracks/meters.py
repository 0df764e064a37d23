"""What is measured while a policy runs: small classes, each with its columns of the runs table.

A meter hears every step of all replicas, and says at a checkpoint what it has measured so far. A
track names its meters, and each says whether it fits the environment and the policy at hand:
columns that nobody measured are null.
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

Columns = dict[str, Floats | Ints]
TOLERANCE = 1e-9  # rewards closer than this are equal
REGRET, REWARD, OPTIMAL_STEPS, LIFT, CLICKS, EXPECTED = range(6)  # totals of ``Regret``


class Meter(ABC):
    """The interface of a meter; what it does not override does nothing."""

    def __init__(self, environment: Any, policy: Any) -> None:
        self.environment, self.policy = environment, policy

    @classmethod
    def fits(cls, environment: Any, policy: Policy) -> bool:
        """Whether there is something to measure."""
        return True

    def add(self, t: int, A: Ints, clicks: Ints) -> None:  # noqa: B027
        """Step t: the actions A (R, W) and their clicks."""

    @abstractmethod
    def columns(self, t: int) -> Columns:
        """What was measured in t steps, (R,) each, by name; the policy has learned from them."""


class Meters:
    """The meters of a run."""

    def __init__(
        self, kinds: Sequence[type[Meter]], environment: Environment, policy: Policy
    ) -> None:
        self._meters = [
            kind(environment, policy) for kind in kinds if kind.fits(environment, policy)
        ]
        self._adds = [meter.add for meter in self._meters]
        self._kept: list[Columns] = []  # of every checkpoint

    def add(self, t: int, A: Ints, clicks: Ints) -> None:
        """Step t."""
        for add in self._adds:
            add(t, A, clicks)

    def record(self, t: int) -> None:
        """Step t is a checkpoint."""
        now = [meter.columns(t) for meter in self._meters]
        self._kept.append({name: x.copy() for columns in now for name, x in columns.items()})

    def columns(self) -> Columns:
        """All columns, (R, number of checkpoints) each."""
        return {name: np.stack([one[name] for one in self._kept], 1) for name in self._kept[0]}


@njit_views
def add_step(best, reward, expected, clicks, totals):
    """Add a step to the totals of each replica.

    LIFT is by how much a list was better than the best one; steps before it were not optimal.
    """
    for r in range(best.shape[0]):
        regret = best[r] - reward[r]
        if -regret > totals[r, LIFT] + TOLERANCE:
            totals[r, LIFT] = -regret
            totals[r, OPTIMAL_STEPS] = 0.0
        totals[r, REGRET] += max(regret, 0.0)
        totals[r, REWARD] += reward[r]
        totals[r, OPTIMAL_STEPS] += regret + totals[r, LIFT] <= TOLERANCE
        totals[r, EXPECTED] += expected[r]
        for k in range(clicks.shape[1]):
            totals[r, CLICKS] += clicks[r, k]


class Regret(Meter):
    """Expected regret, the reward of the best action minus that of the one shown; and clicks.

    One meter, because a call of a kernel costs as much as what it counts. A list that is better
    than the best one is an error where that is proven to be best; elsewhere ``against_best_known``
    counts regret from it, or, where users change, it has none.
    """

    def __init__(self, environment: Simulation, policy: Policy) -> None:
        super().__init__(environment, policy)
        self._best = environment.best_reward
        self._totals = np.zeros((len(self._best), 6))
        self._proven = np.array([p.proven for p in environment.mine])

    def add(self, t: int, A: Ints, clicks: Ints) -> None:
        """Step t."""
        reward = self.environment.reward(A)
        add_step(self._best, reward, self.environment.expected_clicks, clicks, self._totals)

    def columns(self, t: int) -> Columns:
        """Regret, reward, the optimal reward, the steps without regret, clicks, expected ones."""
        regret, reward, optimal_steps, lift, clicks, expected = self._totals.T
        optimal, proven = self.environment.optimal_reward(t), self._proven
        if (wrong := lift * proven).any():
            query = self.environment.mine[wrong.argmax()].key.drawn_query
            raise LogevalError(
                f"query {query}: a policy showed a list with more expected reward than the model's "
                "best_list; the optimum of this click model is wrong"
            )
        changes = bool(self.environment.change_points)
        if changes:
            optimal = np.where(proven, optimal, reward + regret)
        best_known = np.where(proven | changes, np.nan, self._best + lift)
        return {
            "regret": regret,
            "reward": reward,
            "optimal_reward": optimal,
            "optimal_steps": optimal_steps.astype(np.int64),
            "clicks": clicks.astype(np.int64),
            "expected_clicks": expected,
            "best_known": best_known,
        }


class PairRegret(Regret):
    """The regret where an action is a pair: that of the pair as well."""

    def columns(self, t: int) -> Columns:
        """Those of ``Regret``, under both names."""
        own = super().columns(t)
        pair = {"pair_regret": own["regret"], "pair_optimal_reward": own["optimal_reward"]}
        return own | pair


class Left(Meter):
    """The rows and columns that a policy which eliminates has left."""

    @classmethod
    def fits(cls, environment: Environment, policy: Policy) -> bool:
        """Whether the policy says what it has left."""
        return isinstance(policy, Eliminating)

    def columns(self, t: int) -> Columns:
        """Rows and columns."""
        rows, columns = self.policy.remaining().T
        return {"rows_left": rows.astype(np.int64), "columns_left": columns.astype(np.int64)}
