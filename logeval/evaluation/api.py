"""``logeval.evaluate``: run policies on simulated users and get a table of their regret."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from logeval.errors import LogevalError, unknown_names
from logeval.evaluation.experiment import AnyProblem, Experiment, checkpoints_of, run_unit
from logeval.evaluation.hardness import hardness_of
from logeval.evaluation.results import Runs
from logeval.evaluation.store import Store, select
from logeval.names import parse_call
from logeval.policies.registry import PolicySpec, in_tracks, parse_policies
from logeval.tables import RUNS
from logeval.tracks.problems import Problem, parse_problem, problems_of
from logeval.tracks.rank1 import Rank1Problem, is_rank1, parse_needle, rank1_problem
from logeval.work import run_tasks


def evaluate(
    models: Any = None,
    *,
    problem: str | Sequence[str] | None = None,
    policies: Sequence[str | type],
    horizon: int,
    runs: int,
    track: str | None = None,
    positions: int | None = None,
    queries: Sequence[str] | None = None,
    reward: str | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    seed: int = 0,
    checkpoints: int | Sequence[int] | None = None,
    out: Path | str | None = None,
    reference: bool = False,
    quiet: bool = False,
) -> Runs:
    """Run each policy ``runs`` times for ``horizon`` steps on each query.

    ``models`` are fitted click models (``(name, query, model)`` each, as ``fit_models`` returns
    them), or the folder of a models table; ``problem`` names
    synthetic ones instead, ``B_LB(L=16,K=4,p=0.2,gap=0.15,gamma=0.5)``. A policy is a name, with
    parameters if need be (``RankedExp3(gamma=0.05)``), ``module:Class``, or a class. With
    ``out`` the runs table is written there as it grows, and the same call goes on where an
    earlier one stopped. The same seed gives the same table. ``reference`` runs the papers'
    pseudocode in plain NumPy instead of the kernels: slowly, with the same regret (TS: the same
    in distribution).
    """
    if runs < 1:
        raise LogevalError(f"runs={runs}: there must be at least one")
    if workers < 1:
        raise LogevalError(f"workers={workers}: there must be at least one")
    parsed = parse_policies(policies, reference)
    if workers > 1 or scheduler is not None:
        _check_importable(parsed)
    given = _problems(models, problem, positions, reward, queries)
    only_pairs = all(isinstance(p, Rank1Problem) for p in given)
    specs = in_tracks(parsed, track, default="rank1" if only_pairs else "ranking")
    problems = _in_tracks(given, {spec.track for spec in specs})
    experiment = Experiment(
        problems=tuple(problems),
        policies=tuple(specs),
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
            "rewards": {f"{p.simulator} ({p.track})": p.reward for p in problems},
            "positions": {f"{p.simulator} ({p.track})": p.K for p in problems},
            "checkpoints": list(experiment.checkpoints),
        }
        folder = str(models) if isinstance(models, str | Path) else None
        own = {spec.name: spec.source() for spec in specs if not spec.checked}
        store.open(settings, problems, folder, own)
    tasks = experiment.tasks(store.done() if store else (), workers)
    finished = []
    for rows in run_tasks(
        run_unit, tasks, workers=workers, scheduler=scheduler, unit="steps", quiet=quiet
    ):
        if store is not None:
            store.add(rows)
        else:
            finished.append(rows)
    hardness = hardness_of(problems, horizon)
    if store is None:
        return Runs(pa.concat_tables([RUNS.empty_table(), *finished]), seed, hardness=hardness)
    store.merge()
    store.add_hardness(hardness)
    return Runs(select(store.rows(), experiment.keys()), seed, store.folder, hardness)


def _check_importable(policies: Sequence[PolicySpec]) -> None:
    """Workers import a policy; they cannot import one that exists in a notebook only."""
    if hasattr(sys.modules["__main__"], "__file__"):
        return
    own = [policy.name for policy in policies if policy.cls.__module__ == "__main__"]
    if own:
        raise LogevalError(
            f"policy {own[0]}: workers cannot import it from a notebook; save the class in a file "
            f'and give "file:{own[0]}", or use one worker'
        )


def _problems(
    models: Any,
    problem: str | Sequence[str] | None,
    positions: int | None,
    reward: str | None,
    queries: Sequence[str] | None,
) -> list[AnyProblem]:
    if (models is None) == (problem is None):
        raise LogevalError("give either fitted models or --problem")
    if problem is not None:
        if positions is not None or queries is not None:
            raise LogevalError("a synthetic problem has its own K and no queries")
        names = [problem] if isinstance(problem, str) else list(problem)
        problems = [_synthetic(name, reward) for name in names]
        twice = [
            p.simulator for p in problems if sum(o.simulator == p.simulator for o in problems) > 1
        ]
        if twice:
            raise LogevalError(f"problem {twice[0]} is given twice")
        return problems
    if isinstance(models, str | Path):
        from logeval.clicks.collection import read_models

        models = read_models(models)
    return list(problems_of(models, positions, reward, queries))


def _synthetic(text: str, reward: str | None) -> AnyProblem:
    if text.lower().startswith("rank1:"):  # rank1:K=64,... is rank1(K=64,...)
        text = f"rank1({text[len('rank1:') :]})"
    name = parse_call(text)[0].lower()
    if name == "rank1":
        return parse_needle(text)
    if name == "b_lb":
        return parse_problem(text, reward)
    raise unknown_names("problem", [name], ["B_LB", "rank1"])


def _in_tracks(problems: list[AnyProblem], tracks: set[str | None]) -> list[AnyProblem]:
    """The problems of the tracks that the policies are in.

    A PBM is a problem of both. Other click models have no pairs, so beside a PBM they take part
    in the ranking track only.
    """
    found: list[AnyProblem] = []
    if "ranking" in tracks:
        found += [p for p in problems if isinstance(p, Problem)]
        if not found:
            raise LogevalError("policies that show lists cannot run on a rank1 problem")
    if "rank1" in tracks:
        has_pairs = any(isinstance(p, Rank1Problem) or is_rank1(p) for p in problems)
        found += [
            p if isinstance(p, Rank1Problem) else rank1_problem(p)
            for p in problems
            if isinstance(p, Rank1Problem) or is_rank1(p) or not has_pairs
        ]
    return found
