"""What policies earn over the traffic of each query, from its first search to its last.

Every draw of the users' parameters has a run of its own. A unit of work is a policy on all draws of
a query, told how often this is searched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from logeval.evaluation.loop import columns_of
from logeval.policies.registry import PolicySpec
from logeval.policies.setting import Policy
from logeval.running import seeds
from logeval.running.arrays import Floats, Ints
from logeval.running.work import Task, Tick, run_tasks
from logeval.tracks.lists import RankingProblem
from logeval.tracks.meters import Columns, Meter
from logeval.tracks.ranking import RankingEnvironment

PIECES = 40  # of the period
MOST = 100_000  # searches of a query that are simulated: from then on it earns as at the end
LAST = 0.1  # of the searches: what "at the end" means
LOOKS = (1, 3, 8, 20, 40)  # pieces at whose ends lists are kept


class Earned(NamedTuple):
    """Of a policy: rewards (D, Q, PIECES) until the end of each piece, and some of its lists."""

    reward: Floats
    lists: list[Ints]  # by query, (D, LOOKS, K)


@dataclass(frozen=True)
class Turn:
    """One policy on all draws of one query."""

    q: int
    policy: PolicySpec
    problems: tuple[RankingProblem, ...]
    steps: tuple[int, ...]
    seed: int


class Total(Meter):
    """The expected reward so far, and the list shown last."""

    def __init__(self, environment: RankingEnvironment, policy: Policy) -> None:
        super().__init__(environment, policy)
        self._total = np.zeros(len(environment.mine))
        self._A: Any = None

    def add(self, t: int, A: Ints, clicks: Ints) -> None:
        """Step t."""
        self._total += self.environment.reward(A)
        self._A = A

    def columns(self, t: int) -> Columns:
        """Reward and items."""
        return {"reward": self._total, "lists": self.environment.items(self._A)}


def run_turn(turn: Turn, tick: Tick) -> tuple[int, str, Floats, Ints]:
    """The query, the policy, rewards and lists (D, T) and (D, T, K) at its steps."""
    D = len(turn.problems)
    environment = RankingEnvironment(turn.problems, [(d, 0) for d in range(D)], turn.seed)
    name = turn.policy.name
    keys = [p.key.path(0) for p in turn.problems]
    found = columns_of(
        turn.policy, environment, (Total,), turn.steps,
        [seeds.generator(turn.seed, "policy", *key, name) for key in keys],
        [f"query {p.query}" for p in turn.problems],
        lambda steps: tick(steps * D),
    )  # fmt: skip
    T = len(turn.steps)
    lists = found["lists"].reshape(D, T, -1).astype(np.int64)
    return turn.q, name, found["reward"].reshape(D, T), lists


def earned(
    policies: Sequence[tuple[PolicySpec, Sequence[str | None]]],
    problems: Sequence[Sequence[RankingProblem]],
    searches: Floats,
    seed: int,
    workers: int = 1,
    quiet: bool = False,
) -> dict[str, Earned]:
    """What each policy earns; with it come the orders of positions, by query, that it is told."""
    D, Q = len(problems[0]), len(problems)
    ends = [pieces(n) for n in searches]
    tasks = []
    for spec, orders in policies:
        for q in range(Q):
            steps = simulated(ends[q])
            told = with_order(spec, orders[q])
            turn = Turn(q, told, tuple(problems[q]), steps, seed)
            tasks.append(Task(spec.name, D * steps[-1], turn))
    reward = {spec.name: np.zeros((D, Q, PIECES)) for spec, _ in policies}
    shown: dict[str, list[Any]] = {spec.name: [None] * Q for spec, _ in policies}
    for q, name, each, lists in run_tasks(
        run_turn, tasks, workers=workers, unit="searches", quiet=quiet
    ):
        steps = simulated(ends[q])
        reward[name][:, q] = until(each, steps, ends[q])
        looks = np.searchsorted(steps, ends[q][np.array(LOOKS) - 1])
        shown[name][q] = lists[:, np.minimum(looks, len(steps) - 1)]
    return {name: Earned(reward[name], shown[name]) for name in reward}


def with_order(spec: PolicySpec, order: str | None) -> PolicySpec:
    """The policy told an order of positions, where it takes one and was not given one."""
    takes = getattr(spec.cls, "PARAMETERS", {}).get("order") in (str, "descending")
    if order is None or not takes or spec.parameters.get("order", "descending") != "descending":
        return spec
    return replace(spec, parameters={**spec.parameters, "order": order})


def pieces(n: float) -> Floats:
    """The searches of a query until the end of each piece of the period."""
    return np.asarray(n * np.arange(1, PIECES + 1) / PIECES)


def simulated(ends: Floats) -> tuple[int, ...]:
    """The steps to be simulated: up to these ends, and those that give the pace at the end."""
    n = int(min(math.ceil(ends[-1]), MOST))
    steps = {int(min(max(math.ceil(t), 1), n)) for t in ends}
    return tuple(sorted({*steps, max(math.floor(n * (1.0 - LAST)), 1), n}))


def until(reward: Floats, steps: Sequence[int], ends: Floats) -> Floats:
    """Rewards (D, T) at the steps, at the ends of pieces: beyond the last step at the last pace."""
    t = np.concatenate([[0.0], steps])
    x = np.concatenate([np.zeros((len(reward), 1)), reward], axis=1)
    found = np.stack([np.interp(ends, t, row) for row in x])
    before = max(np.searchsorted(t, t[-1] * (1.0 - LAST), side="right") - 1, 0)
    pace = (x[:, -1] - x[:, before]) / max(t[-1] - t[before], 1.0)
    return np.asarray(found + pace[:, None] * np.maximum(ends - t[-1], 0.0))
