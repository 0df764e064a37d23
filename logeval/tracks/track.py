"""What a track is: the record in which everything else looks it up.

A track says what a step of a policy is (a list, a pair, ...), on which problems, and what is
measured. Adding one is a file with its problem, its environment and its ``Track``, and a line in
``tracks/registry.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from logeval.running.arrays import Floats, Ints
from logeval.tracks.fitted import FittedQuery
from logeval.tracks.meters import Meter

SYNTHETIC = "synthetic"  # the query of a synthetic problem
Replicas = Sequence[tuple[int, int]]  # (index of the problem, run)


class Problem(Protocol):
    """One query of a simulator, in one track."""

    @property
    def track(self) -> str:
        """Name of the track."""

    @property
    def simulator(self) -> str:
        """Click model, or the name of a synthetic problem."""

    @property
    def query(self) -> str:
        """Query and region, ``9982@0``."""

    @property
    def reward(self) -> str:
        """What is counted."""

    @property
    def positions(self) -> int:
        """Number of positions."""

    def checksum(self) -> str:
        """Equal for equal problems; two runs of one experiment must agree on it."""


class Environment(Protocol):
    """What answers a policy: R replicas, whose actions are the rows of A (R, W)."""

    limits: Ints  # (R, W) the number of choices at each place of an action
    distinct: bool  # whether the places of an action must differ, as those of a list
    offers: Mapping[str, Any]  # capabilities by name, see ``policies.setting.CAPABILITIES``

    def step(self, A: Ints) -> Ints:
        """The clicks on A."""


class Simulation(Environment, Protocol):
    """An environment that knows the truth, and therefore the regret."""

    problems: Sequence[Any]
    query: Ints  # (R,) index of the problem of each replica
    best_reward: Floats  # (R,)

    def reward(self, A: Ints) -> Floats:
        """The expected reward (R,) of A."""


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
    environment: Callable[[Sequence[Any], Replicas, int], Environment]  # of a seed
    problems: Callable[[Sequence[FittedQuery], str | None], Sequence[Problem]]  # and the reward
    synthetic: Mapping[str, Callable[[str, str | None], Problem]]  # parsers of text and reward
    # by name of the synthetic problem, from its text: in the end regret is above slope * log t
    lower_slopes: Mapping[str, Callable[[str], float | None]] = field(default_factory=dict)
    hardness: Callable[[Any, int], dict[str, Any]] | None = None  # of a problem at a horizon
    # by how much each position counts for the best action of a problem; None: there is no order
    position_weights: Callable[[Any], Floats | None] = lambda problem: None
