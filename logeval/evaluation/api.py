"""``logeval.evaluate``: run policies on simulated users and get a table of their regret."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from logeval import __version__
from logeval.errors import LogevalError
from logeval.evaluation.experiment import Experiment, check_runs, checkpoints_of, run_unit
from logeval.evaluation.hardness import hardness_of
from logeval.evaluation.matching import Users, in_tracks, users_of
from logeval.evaluation.position_order import order_notes
from logeval.evaluation.results import Runs
from logeval.evaluation.store import Store, edited, keys_of
from logeval.log.queries import GivenQueries
from logeval.policies.registry import PolicySpec, own_sources, parse_policies
from logeval.policies.setting import Setting
from logeval.running.seeds import generator
from logeval.running.work import run_tasks
from logeval.storage.tables import RUNS, read_manifest, read_table
from logeval.tracks.registry import TRACKS


def evaluate(
    models: Any = None,
    *,
    problem: str | Sequence[str] | None = None,
    policies: str | type | Sequence[str | type],
    horizon: int = 10_000,
    runs: int = 5,
    track: str | None = None,
    positions: int | None = None,
    queries: GivenQueries = None,
    reward: str | None = None,
    features: Any = None,
    block: int | None = None,
    same_log: bool = False,
    draws: int = 0,
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

    With ``features`` (a folder that ``make_features`` wrote, or what it returned) the queries take
    turns in blocks of ``block`` rounds, for policies of the contextual track; features from the
    sessions that the models were fitted to are refused unless ``same_log``.

    With ``draws`` the simulators are not the fitted models but that many draws of their parameters
    (``clicks.draws``), each with its own optimum, the same for all policies; ``runs`` are made on
    each. Intervals then hold what the log leaves open about the models, too.
    """
    if workers < 1:
        raise LogevalError(f"workers={workers}: there must be at least one")
    users = users_of(models, problem, positions, reward, queries, features, block, same_log, draws)
    parsed = parse_policies(policies, reference, users.track)
    if workers > 1 or scheduler is not None:
        _check_importable(parsed)
    experiment = _experiment(users, parsed, track, horizon, runs, checkpoints, seed)
    problems, specs = experiment.problems, experiment.policies
    _check_makeable(experiment, horizon)
    notes = [*users.notes(problems), *order_notes(specs, problems)]
    run_all = partial(
        run_tasks, run_unit, workers=workers, scheduler=scheduler, unit="steps", quiet=quiet
    )
    hardness = hardness_of(problems, horizon)
    if out is None:
        rows = pa.concat_tables([RUNS.empty_table(), *run_all(experiment.tasks(workers=workers))])
        return Runs(rows, seed, hardness=hardness, notes=notes)
    store = Store(out)
    with store.held():
        settings = {
            "horizon": horizon,
            "seed": seed,
            "rewards": {f"{p.simulator} ({p.track})": p.reward for p in problems},
            "positions": {f"{p.simulator} ({p.track})": p.positions for p in problems},
            "checkpoints": list(experiment.checkpoints),
        }
        folder = str(models) if isinstance(models, str | Path) else None
        store.open(settings, problems, folder, own_sources(specs), notes)
        with contextlib.closing(run_all(experiment.tasks(store.done(), workers))) as finished:
            for rows in finished:
                store.add(rows)
        store.merge()
        store.add_hardness(hardness)
        return Runs(store.rows(experiment.keys()), seed, store.folder, hardness, notes)


def _check_makeable(experiment: Experiment, horizon: int) -> None:
    """A policy that asks for what a simulator cannot give is refused before anything runs."""
    for spec in experiment.policies:
        if not spec.built_in or spec.track is None:
            continue
        here = [p for p in experiment.problems if p.track == spec.track]
        for simulator in dict.fromkeys(p.simulator for p in here):
            mine = [p for p in here if p.simulator == simulator]
            largest = max(range(len(mine)), key=lambda i: getattr(mine[i], "L", 0))
            users = TRACKS[spec.track].environment(mine, [(largest, 0)], experiment.seed)
            spec.make(Setting.of(users, horizon, [generator(experiment.seed, "check")]))


def missing_runs(
    out: Path,
    models: Path,
    *,
    policies: Sequence[str | type],
    horizon: int,
    runs: int,
    track: str | None,
    positions: int | None,
    queries: GivenQueries,
    reward: str | None,
    seed: int,
    checkpoints: int | Sequence[int] | None,
    reference: bool = False,
    features: Any = None,
    block: int | None = None,
    same_log: bool = False,
    draws: int = 0,
) -> str | None:
    """Why ``out`` does not hold all runs that ``evaluate`` would make; None if it does."""
    if not (out / "runs.parquet").exists():
        return "there is no output yet"
    if Store(out).units.exists():
        return "a process was killed while it merged its runs"
    users = users_of(models, None, positions, reward, queries, features, block, same_log, draws)
    parsed = parse_policies(policies, reference, users.track)
    asked = set(_experiment(users, parsed, track, horizon, runs, checkpoints, seed).keys())
    try:
        manifest = read_manifest(out)
        if (made_by := manifest["version"]) != __version__:
            return f"it was made by logeval {made_by}"
        if changed := edited(manifest, own_sources(parsed)):
            return changed[0]
        missing = asked - keys_of(read_table(out, "runs"))
    except LogevalError as error:
        return str(error).partition(";")[0]
    return f"{len(missing)} of {len(asked)} runs are missing" if missing else None


def _experiment(
    users: Users,
    policies: Sequence[PolicySpec],
    track: str | None,
    horizon: int,
    runs: int,
    checkpoints: int | Sequence[int] | None,
    seed: int,
) -> Experiment:
    specs = in_tracks(policies, track, users.track)
    if not specs:
        raise LogevalError("there is no policy to evaluate; name at least one")
    tracks = [name for name in TRACKS if any(spec.track == name for spec in specs)]
    problems = tuple(p for name in tracks for p in users.problems(name))
    check_runs(runs, sum(p.track == spec.track for p in problems for spec in specs))
    return Experiment(
        problems=problems,
        policies=tuple(specs),
        runs=runs,
        checkpoints=checkpoints_of(horizon, checkpoints),
        seed=seed,
    )


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
