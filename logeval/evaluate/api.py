"""``logeval.evaluate``: run policies on simulated users and get a table of their regret."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from logeval.errors import LogevalError
from logeval.evaluate.experiment import Experiment, checkpoints_of, run_unit
from logeval.evaluate.results import Runs
from logeval.evaluate.store import Store, select
from logeval.policies.registry import parse_policies
from logeval.simulate.problems import Problem, parse_problem, problems_of
from logeval.tables import RUNS
from logeval.work import run_tasks


def evaluate(
    models: Any = None,
    *,
    problem: str | Sequence[str] | None = None,
    policies: Sequence[str | type],
    horizon: int,
    runs: int,
    positions: int | None = None,
    queries: Sequence[str] | None = None,
    reward: str | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    seed: int = 0,
    checkpoints: int | Sequence[int] | None = None,
    out: Path | str | None = None,
    quiet: bool = False,
) -> Runs:
    """Run each policy ``runs`` times for ``horizon`` steps on each query.

    ``models`` are fitted click models (``(name, query, model)`` each, as ``fit_models`` returns
    them), or the folder of a models table; ``problem`` names
    synthetic ones instead, ``B_LB(L=16,K=4,p=0.2,gap=0.15,gamma=0.5)``. A policy is a name, with
    parameters if need be (``RankedExp3(gamma=0.05)``), ``module:Class``, or a class. With
    ``out`` the runs table is written there as it grows, and the same call goes on where an
    earlier one stopped. The same seed gives the same table.
    """
    if runs < 1:
        raise LogevalError(f"runs={runs}: there must be at least one")
    if workers < 1:
        raise LogevalError(f"workers={workers}: there must be at least one")
    problems = _problems(models, problem, positions, reward, queries)
    experiment = Experiment(
        problems=tuple(problems),
        policies=tuple(parse_policies(policies)),
        runs=runs,
        checkpoints=checkpoints_of(horizon, checkpoints),
        seed=seed,
    )
    if not experiment.policies:
        raise LogevalError("there is no policy to evaluate; name one with --policy")
    store = Store(out) if out is not None else None
    if store is not None:
        settings = {
            "horizon": horizon,
            "seed": seed,
            "rewards": {p.simulator: p.reward for p in problems},
            "positions": {p.simulator: p.K for p in problems},
            "checkpoints": list(experiment.checkpoints),
        }
        store.open(settings, problems)
    tasks = experiment.tasks(store.done() if store else (), workers)
    finished = []
    for rows in run_tasks(
        run_unit, tasks, workers=workers, scheduler=scheduler, unit="steps", quiet=quiet
    ):
        if store is not None:
            store.add(rows)
        else:
            finished.append(rows)
    if store is None:
        return Runs(pa.concat_tables([RUNS.empty_table(), *finished]), seed)
    store.merge()
    return Runs(select(store.rows(), experiment.keys()), seed, store.folder)


def _problems(
    models: Any,
    problem: str | Sequence[str] | None,
    positions: int | None,
    reward: str | None,
    queries: Sequence[str] | None,
) -> list[Problem]:
    if (models is None) == (problem is None):
        raise LogevalError("give either fitted models or --problem")
    if problem is not None:
        if positions is not None or queries is not None:
            raise LogevalError("a synthetic problem has its own K and no queries")
        names = [problem] if isinstance(problem, str) else list(problem)
        problems = [parse_problem(name, reward) for name in names]
        twice = [
            p.simulator for p in problems if sum(o.simulator == p.simulator for o in problems) > 1
        ]
        if twice:
            raise LogevalError(f"problem {twice[0]} is given twice")
        return problems
    if isinstance(models, str | Path):
        from logeval.clicks.models import read_models

        models = read_models(models)
    return problems_of(models, positions, reward, queries)
