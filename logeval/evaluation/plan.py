"""What to run: problems x policies x runs, cut into units of work.

A unit is one policy on some replicas of one simulator. Its rows depend on the seed and on
nothing else, so units may be cut in any way, and run anywhere, in any order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from logeval.errors import LogevalError
from logeval.evaluation.feedback import PLAIN, Feedback
from logeval.policies.registry import PolicySpec
from logeval.running.work import Task
from logeval.storage.schemas import PROBLEMS
from logeval.tracks.keys import ReplicaKey
from logeval.tracks.track import Problem

LARGEST_UNIT = 32  # replicas: enough that calls of kernels cost little, few enough to share out
SMALLEST_UNIT = 8
LONGEST = 10**12  # steps; beyond it a run would take years
MOST_CHECKPOINTS = 100_000
MOST_REPLICAS = 10_000_000  # policies x queries x runs, each with its rows


@dataclass(frozen=True)
class Unit:
    """One policy on some replicas (index of the problem, run) of one simulator."""

    problems: tuple[Problem, ...]
    policy: PolicySpec
    replicas: tuple[tuple[int, int], ...]
    checkpoints: tuple[int, ...]
    seed: int
    feedback: Feedback = PLAIN


@dataclass(frozen=True)
class Plan:
    """All policies on all runs of all problems."""

    problems: tuple[Problem, ...]
    policies: tuple[PolicySpec, ...]
    runs: int
    checkpoints: tuple[int, ...]
    seed: int
    feedback: Feedback = PLAIN

    def keys(self) -> list[ReplicaKey]:
        """Every replica of every policy."""
        return [
            key_of(problem, policy, run)
            for policy in self.policies
            for problem in self.problems
            if problem.track == policy.track
            for run in range(self.runs)
        ]

    def units(self, done: Collection[ReplicaKey] = (), workers: int = 1) -> list[Task]:
        """The units of what is not done yet, at least four per worker where that is possible."""
        missing = len(set(self.keys()).difference(done))
        size = int(np.clip(missing // (4 * workers), SMALLEST_UNIT, LARGEST_UNIT))
        units = []
        for policy in self.policies:
            in_track = [p for p in self.problems if p.track == policy.track]
            for simulator in dict.fromkeys(p.simulator for p in in_track):
                mine = [p for p in in_track if p.simulator == simulator]
                replicas = [
                    (problem, run)
                    for problem in mine
                    for run in range(self.runs)
                    if key_of(problem, policy, run) not in done
                ]
                for i in range(0, len(replicas), size):
                    units.append(self._unit(policy, replicas[i : i + size]))
        return units

    def _unit(self, policy: PolicySpec, replicas: list[tuple[Problem, int]]) -> Task:
        problems = {problem.key: problem for problem, _ in replicas}
        index = {key: q for q, key in enumerate(problems)}
        numbered = tuple((index[problem.key], run) for problem, run in replicas)
        unit = Unit(
            tuple(problems.values()), policy, numbered, self.checkpoints, self.seed, self.feedback
        )
        return Task(policy.name, len(replicas) * self.checkpoints[-1], unit)

    def problem_table(self) -> pa.Table:
        """What is known of the problems beforehand (``schemas.PROBLEMS``)."""
        rows = [problem.facts(self.checkpoints[-1]) for problem in self.problems]
        columns = [
            pa.array([row.get(f.name) for row in rows], f.type, from_pandas=True) for f in PROBLEMS
        ]
        return pa.Table.from_arrays(columns, schema=PROBLEMS)


def key_of(problem: Problem, policy: PolicySpec, run: int) -> ReplicaKey:
    """What a run of a policy on a problem is called."""
    simulator, track, query, draw = problem.key
    return ReplicaKey(simulator, track, policy.name, query, draw, run)


def check_runs(runs: int, each: int) -> None:
    """Refuse numbers of runs that cannot be meant; there are as many of ``each`` policy and query.

    A billion of them would be hours of making lists before the first step.
    """
    if runs < 1:
        raise LogevalError(f"runs={runs}: there must be at least one")
    if runs * each > MOST_REPLICAS:
        raise LogevalError(
            f"runs={runs}: with all policies and queries {runs * each:,} runs, and at most "
            f"{MOST_REPLICAS:,} are possible"
        )


def checkpoints_of(horizon: int, checkpoints: int | Sequence[int] | None = None) -> tuple[int, ...]:
    """The steps at which totals are stored; the horizon is always one of them.

    A number N gives N log-spaced and N evenly spaced steps, for figures of both kinds; the
    default is 20. A list gives the steps themselves.
    """
    if horizon < 1:
        raise LogevalError(f"horizon={horizon}: there must be at least one step")
    if horizon > LONGEST:
        raise LogevalError(f"horizon={horizon}: is too long; the longest is {LONGEST:,} steps")
    if checkpoints is None or isinstance(checkpoints, int):
        n = 20 if checkpoints is None else checkpoints
        if not 1 <= n <= MOST_CHECKPOINTS:
            raise LogevalError(f"checkpoints={n}: there must be 1 to {MOST_CHECKPOINTS:,}")
        even = np.linspace(horizon / n, horizon, n)
        steps = np.rint(np.concatenate([np.geomspace(1, horizon, n), even])).astype(int).clip(1)
        return tuple(sorted({*steps.tolist(), horizon}))
    if wrong := [int(t) for t in checkpoints if not 1 <= t <= horizon]:
        raise LogevalError(f"checkpoint {wrong[0]} is not between 1 and the horizon {horizon}")
    return tuple(sorted({*map(int, checkpoints), horizon}))
