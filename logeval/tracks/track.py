"""What a track is: the record in which everything else looks it up.

A track says what a step of a policy is (a list, a pair, ...), on which problems, and what is
measured. Adding one is a file with its problem, its environment and its ``Track``, and a line in
``tracks/registry.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from logeval.errors import LogevalError
from logeval.facts import Fact
from logeval.running import seeds
from logeval.running.arrays import Floats, Ints
from logeval.running.seeds import Uniforms
from logeval.tracks.fitted import Fitted
from logeval.tracks.keys import ProblemKey
from logeval.tracks.meters import Meter

SYNTHETIC = "synthetic"  # the query of a synthetic problem
Replicas = Sequence[tuple[int, int]]  # (index of the problem, run)


@dataclass(frozen=True)
class Problem(ABC):
    """One query of a simulator, in one track."""

    track: ClassVar[str]

    simulator: str  # click model, or the name of a synthetic problem
    query: str  # query and region, "9982@0"
    draw: int = field(default=0, kw_only=True)  # of the parameters; 0: the fitted values
    reward: str = field(default="satisfaction", kw_only=True)  # what is counted
    gap: float = field(default=0.0, kw_only=True)  # to a bound on any action; nan: not known
    remarks: tuple[Fact, ...] = field(default=(), kw_only=True, repr=False)  # for the user

    @property
    def key(self) -> ProblemKey:
        """What the problem is called."""
        return ProblemKey(self.simulator, self.track, self.query, self.draw)

    @property
    def proven(self) -> bool:
        """Whether no action is better than the best one."""
        return self.gap == 0.0

    @property
    @abstractmethod
    def positions(self) -> int:
        """Number of positions."""

    @property
    def size(self) -> int:
        """Number of items."""
        return 0

    @abstractmethod
    def checksum(self) -> str:
        """Equal for equal problems; two runs of one experiment must agree on it."""

    def position_weights(self) -> Floats | None:
        """By how much each position counts for the best action; None: there is no order."""
        return None

    def facts(self, n: int) -> dict[str, Any]:
        """Its row of the table ``problems``, for n steps; a track adds what it knows."""
        return {
            **self.key._asdict(),
            "reward": self.reward,
            "positions": self.positions,
            "items": self.size,
            "proven": self.proven,
            "gap": self.gap,
            "n": n,
        }


class Environment(Protocol):
    """What answers a policy: R replicas, whose actions are the rows of A (R, W)."""

    limits: Ints  # (R, W) the number of choices at each place of an action
    distinct: bool  # whether the places of an action must differ, as those of a list
    offers: Mapping[str, Any]  # capabilities by name, see ``policies.setting.CAPABILITIES``

    def step(self, A: Ints) -> Ints:
        """The clicks on A."""


class Simulation(ABC):
    """An environment that knows the truth, and therefore the regret.

    ``replicas`` are pairs (index of the problem, run). Users depend on the seed, simulator, query
    and run, and not on the policy: all policies meet the same ones, and the same labels.
    """

    PATH: ClassVar[tuple[str, ...]] = ()  # of its own random numbers
    distinct: bool = True
    limits: Ints
    offers: Mapping[str, Any]
    best_reward: Floats  # (R,) of the moment
    change_points: Mapping[
        int, int
    ] = {}  # the steps before which users change, and their new period

    def __init__(
        self, problems: Sequence[Any], replicas: Replicas, seed: int, *, clicks: int
    ) -> None:
        self.problems, self.replicas, self.seed = list(problems), list(replicas), seed
        self.query = np.array([q for q, _ in replicas], dtype=np.int64)  # (R,)
        self.mine = [self.problems[q] for q, _ in replicas]  # of each replica
        self._uniforms = Uniforms(self.generators("environment"), clicks)
        self._clicks = np.empty((len(replicas), clicks), dtype=np.int8)
        self._reward = np.empty(len(replicas))
        self.expected_clicks = np.full(len(replicas), np.nan)  # of the actions last rewarded
        self._t = 0  # steps so far

    @property
    def rows(self) -> range:
        """The replicas, 0 to R - 1."""
        return range(len(self.replicas))

    def generators(self, purpose: str) -> list[np.random.Generator]:
        """The random numbers of every replica."""
        return [self.generator(purpose, r) for r in self.rows]

    def generator(self, purpose: str, r: int) -> np.random.Generator:
        """The random numbers of a replica."""
        path = self.mine[r].key.path(self.replicas[r][1])
        return seeds.generator(self.seed, purpose, *self.PATH, *path)

    def step(self, A: Ints) -> Ints:
        """Show the actions A to the next users; their clicks, reused by the next."""
        self._t += 1
        self._click(A, self._uniforms.at(self._t))
        return self._clicks

    def until(self, horizon: int) -> None:  # noqa: B027
        """There will be so many steps: where users change, periods are of equal length."""

    def change(self, t: int) -> None:  # noqa: B027
        """The users of step t, one of the ``change_points``, are others than before."""

    def optimal_reward(self, t: int) -> Floats:
        """Expected reward of the best actions of t steps, (R,)."""
        return self.best_reward * t

    def reward(self, A: Ints) -> Floats:
        """Expected reward of the actions A, (R,), reused by the next call."""
        self._earn(A)
        return self._reward

    def regret(self, A: Ints) -> Floats:
        """Expected regret of the actions A, (R,)."""
        return self.best_reward - self.reward(A)

    @abstractmethod
    def _click(self, A: Ints, u: Floats) -> None:
        """Write the clicks on A of users with the uniforms u."""

    @abstractmethod
    def _earn(self, A: Ints) -> None:
        """Write the expected reward of A."""


class Reward(NamedTuple):
    """A reward by which the policies of a track are judged, with its columns in the runs table."""

    name: str
    meaning: str
    regret: str
    optimal: str
    line: str  # how figures draw it (matplotlib's linestyle)


@dataclass(frozen=True)
class Track:
    """Everything that is particular to a track."""

    name: str
    rewards: tuple[Reward, ...]
    meters: tuple[type[Meter], ...]
    environment: Callable[[Sequence[Any], Replicas, int], Simulation]  # of a seed
    problems: Callable[[Fitted], Sequence[Problem]]
    synthetic: Mapping[str, Callable[[str, str | None], Problem]]  # parsers of text and reward
    # by name of the synthetic problem, from its text: in the end regret is above slope * log t
    lower_slopes: Mapping[str, Callable[[str], float | None]] = field(default_factory=dict)
    features: bool = False  # whether its problems are made from features
    counts: tuple[str, ...] = ()  # what may be counted; empty: what the models have

    def check_reward(self, reward: str | None) -> None:
        """Refuse a reward that the track does not count."""
        if self.counts and reward not in (None, *self.counts):
            raise LogevalError(
                f"reward={reward}: the {self.name} track counts {', '.join(self.counts)}"
            )
