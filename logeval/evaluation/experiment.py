"""What to run: problems x policies x runs, cut into units of work.

A unit is one policy on some replicas of one simulator. Its rows depend on the seed and on
nothing else, so units may be cut in any way, and run anywhere, in any order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from logeval.errors import LogevalError
from logeval.evaluation.loop import CheckedPolicy, naming, run
from logeval.policies.registry import PolicySpec
from logeval.policies.setting import Setting
from logeval.running import seeds
from logeval.running.work import Task, Tick
from logeval.storage.tables import RUNS
from logeval.tracks.fitted import query_and_draw
from logeval.tracks.meters import Meters
from logeval.tracks.registry import TRACKS
from logeval.tracks.track import Problem

LARGEST_UNIT = 32  # replicas: enough that calls of kernels cost little, few enough to share out
SMALLEST_UNIT = 8
LONGEST = 10**12  # steps; beyond it a run would take years
MOST_CHECKPOINTS = 100_000
MOST_REPLICAS = 10_000_000  # policies x queries x runs, each with its rows
Key = tuple[str, str, str, str, int, int]  # simulator, track, policy, query, draw, run


@dataclass(frozen=True)
class Unit:
    """One policy on some replicas (index of the problem, run) of one simulator."""

    problems: tuple[Problem, ...]
    policy: PolicySpec
    replicas: tuple[tuple[int, int], ...]
    checkpoints: tuple[int, ...]
    seed: int


@dataclass(frozen=True)
class Experiment:
    """All policies on all runs of all problems."""

    problems: tuple[Problem, ...]
    policies: tuple[PolicySpec, ...]
    runs: int
    checkpoints: tuple[int, ...]
    seed: int

    def keys(self) -> list[Key]:
        """Every replica of every policy."""
        return [
            (problem.simulator, problem.track, policy.name, *query_and_draw(problem.query), run)
            for policy in self.policies
            for problem in self.problems
            if problem.track == policy.track
            for run in range(self.runs)
        ]

    def tasks(self, done: Collection[Key] = (), workers: int = 1) -> list[Task]:
        """The units of what is not done yet, at least four per worker where that is possible."""
        done = set(done)
        missing = [key for key in self.keys() if key not in done]
        size = int(np.clip(len(missing) // (4 * workers), SMALLEST_UNIT, LARGEST_UNIT))
        tasks = []
        for policy in self.policies:
            in_track = [p for p in self.problems if p.track == policy.track]
            for simulator in dict.fromkeys(p.simulator for p in in_track):
                mine = [p for p in in_track if p.simulator == simulator]
                index = {query_and_draw(p.query): q for q, p in enumerate(mine)}
                this = (simulator, policy.track, policy.name)
                replicas = [(index[key[3:5]], key[5]) for key in missing if key[:3] == this]
                for i in range(0, len(replicas), size):
                    tasks.append(self._task(mine, policy, replicas[i : i + size]))
        return tasks

    def _task(
        self, problems: list[Problem], policy: PolicySpec, replicas: list[tuple[int, int]]
    ) -> Task:
        used = sorted({q for q, _ in replicas})
        unit = Unit(
            tuple(problems[q] for q in used),
            policy,
            tuple((used.index(q), run) for q, run in replicas),
            self.checkpoints,
            self.seed,
        )
        return Task(policy.name, len(replicas) * self.checkpoints[-1], unit)


def run_unit(unit: Unit, tick: Tick) -> pa.Table:
    """The rows of a unit in the runs table; ``tick`` hears the list-steps done."""
    track = TRACKS[unit.problems[0].track]
    environment = track.environment(unit.problems, unit.replicas, unit.seed)
    replicas = [(unit.problems[q], run) for q, run in unit.replicas]
    generators = [
        seeds.generator(unit.seed, "policy", p.simulator, p.query, run, unit.policy.stream)
        for p, run in replicas
    ]
    setting = Setting.of(environment, unit.checkpoints[-1], generators)
    if unit.policy.built_in:
        policy = unit.policy.make(setting)
    else:
        places = [f"query {p.query} run {run}" for p, run in replicas]
        with naming(unit.policy.name, "cannot be made", places):
            policy = unit.policy.make(setting)
    meters = Meters(track.meters, environment, policy, unit.checkpoints)
    if not unit.policy.built_in:
        policy = CheckedPolicy(policy, unit.policy.name, setting, places)
    R, n = len(replicas), len(unit.checkpoints)
    run(environment, policy, meters, unit.checkpoints, lambda steps: tick(steps * R))
    columns: dict[str, Any] = {
        "simulator": [unit.problems[0].simulator] * (R * n),
        "track": [track.name] * (R * n),
        "policy": [unit.policy.name] * (R * n),
        "query": np.repeat([query_and_draw(p.query)[0] for p, _ in replicas], n),
        "draw": np.repeat([query_and_draw(p.query)[1] for p, _ in replicas], n),
        "run": np.repeat([run for _, run in replicas], n),
        "t": np.tile(unit.checkpoints, R),
        **{name: values.ravel() for name, values in meters.columns().items()},
    }
    arrays = [
        pa.array(columns[f.name]).cast(f.type) if f.name in columns else pa.nulls(R * n, f.type)
        for f in RUNS
    ]
    return pa.Table.from_arrays(arrays, schema=RUNS)


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
