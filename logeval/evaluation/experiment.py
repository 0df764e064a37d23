"""What to run: problems x policies x runs, cut into units of work.

A unit is one policy on some replicas of one simulator. Its rows depend on the seed and on
nothing else, so units may be cut in any way, and run anywhere, in any order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from logeval import seeds
from logeval.arrays import Floats
from logeval.errors import LogevalError
from logeval.evaluation.loop import CheckedPolicy, run
from logeval.policies.registry import PolicySpec
from logeval.policies.setting import Policy, Setting
from logeval.tables import RUNS
from logeval.tracks.problems import Problem
from logeval.tracks.rank1 import Rank1Environment, Rank1Problem
from logeval.tracks.ranking import RankingEnvironment
from logeval.work import Task, Tick

LARGEST_UNIT = 32  # replicas: enough that calls of kernels cost little, few enough to share out
SMALLEST_UNIT = 8
Key = tuple[str, str, str, str, int]  # simulator, track, policy, query, run
AnyProblem = Problem | Rank1Problem


@dataclass(frozen=True)
class Unit:
    """One policy on some replicas (index of the problem, run) of one simulator."""

    problems: tuple[AnyProblem, ...]
    policy: PolicySpec
    replicas: tuple[tuple[int, int], ...]
    checkpoints: tuple[int, ...]
    seed: int


@dataclass(frozen=True)
class Experiment:
    """All policies on all runs of all problems."""

    problems: tuple[AnyProblem, ...]
    policies: tuple[PolicySpec, ...]
    runs: int
    checkpoints: tuple[int, ...]
    seed: int

    def keys(self) -> list[Key]:
        """Every replica of every policy."""
        return [
            (problem.simulator, problem.track, policy.name, problem.query, run)
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
                index = {p.query: q for q, p in enumerate(mine)}
                this = (simulator, policy.track, policy.name)
                replicas = [(index[key[3]], key[4]) for key in missing if key[:3] == this]
                for i in range(0, len(replicas), size):
                    tasks.append(self._task(mine, policy, replicas[i : i + size]))
        return tasks

    def _task(
        self, problems: list[AnyProblem], policy: PolicySpec, replicas: list[tuple[int, int]]
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
    environment = _environment(unit)
    generators = [
        seeds.generator(
            unit.seed, "policy", unit.problems[q].simulator, unit.problems[q].query, run,
            unit.policy.name,
        )
        for q, run in unit.replicas
    ]  # fmt: skip
    setting = Setting.of(environment, unit.checkpoints[-1], generators)
    policy: Policy = unit.policy.make(setting)
    if not unit.policy.checked:
        policy = CheckedPolicy(policy, unit.policy.name, setting)
    R = len(unit.replicas)
    totals = run(environment, policy, unit.checkpoints, lambda steps: tick(steps * R))
    better = totals.better_than_best()
    if len(better):
        query = unit.problems[unit.replicas[better[0]][0]].query
        raise LogevalError(
            f"query {query}: {unit.policy.name} showed a list with more expected reward than the "
            "model's best_list; the optimum of this click model is wrong"
        )
    n = len(unit.checkpoints)
    pairs = unit.problems[0].track == "rank1"
    pair_best = totals.best if pairs else totals.pair_best
    columns = {
        "simulator": [unit.problems[0].simulator] * (R * n),
        "track": [unit.problems[0].track] * (R * n),
        "policy": [unit.policy.name] * (R * n),
        "query": np.repeat([unit.problems[q].query for q, _ in unit.replicas], n),
        "run": np.repeat([run for _, run in unit.replicas], n),
        "t": np.tile(totals.checkpoints, R),
        "regret": totals.regret.ravel(),
        "reward": totals.reward.ravel(),
        "optimal_reward": np.outer(totals.best, totals.checkpoints).ravel(),
        "clicks": totals.clicks.ravel(),
        "optimal_steps": totals.optimal_steps.ravel(),
        "pair_regret": _or_null(totals.regret if pairs else totals.pair_regret),
        "pair_optimal_reward": _or_null(
            np.full((R, n), np.nan)
            if pair_best is None
            else np.outer(pair_best, totals.checkpoints)
        ),
        "rows_left": _or_null(totals.left[:, :, 0]),
        "columns_left": _or_null(totals.left[:, :, 1]),
    }
    return pa.table(columns).cast(RUNS)


def _or_null(values: Floats) -> pa.Array:
    return pa.array(values.ravel(), from_pandas=True)  # nan: null


def _environment(unit: Unit) -> RankingEnvironment | Rank1Environment:
    lists = [p for p in unit.problems if isinstance(p, Problem)]
    if lists:
        return RankingEnvironment(lists, unit.replicas, unit.seed)
    pairs = [p for p in unit.problems if isinstance(p, Rank1Problem)]
    return Rank1Environment(pairs, unit.replicas, unit.seed)


def checkpoints_of(horizon: int, checkpoints: int | Sequence[int] | None = None) -> tuple[int, ...]:
    """The steps at which totals are stored; the horizon is always one of them.

    A number N gives N log-spaced and N evenly spaced steps, for figures of both kinds; the
    default is 20. A list gives the steps themselves.
    """
    if horizon < 1:
        raise LogevalError(f"horizon={horizon}: there must be at least one step")
    if checkpoints is None or isinstance(checkpoints, int):
        n = 20 if checkpoints is None else checkpoints
        if n < 1:
            raise LogevalError(f"checkpoints={n}: there must be at least one")
        even = np.linspace(horizon / n, horizon, n)
        steps = np.rint(np.concatenate([np.geomspace(1, horizon, n), even])).astype(int).clip(1)
    else:
        steps = np.array(checkpoints, dtype=int)
    wrong = [int(t) for t in steps if not 1 <= t <= horizon]
    if wrong:
        raise LogevalError(f"checkpoint {wrong[0]} is not between 1 and the horizon {horizon}")
    return tuple(sorted({*(int(t) for t in steps), horizon}))
