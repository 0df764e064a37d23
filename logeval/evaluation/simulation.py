"""Runs policies on simulated users, and keeps the table of their regret."""

from __future__ import annotations

import contextlib
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from logeval import __version__
from logeval.errors import LogevalError
from logeval.evaluation.feedback import Feedback, check_late
from logeval.evaluation.loop import run_unit
from logeval.evaluation.matching import Simulators, in_tracks, order_facts, simulators_of
from logeval.evaluation.plan import Plan, check_runs, checkpoints_of
from logeval.evaluation.results import Runs
from logeval.evaluation.store import Store, against_best_known, keys_of
from logeval.policies.registry import PolicySpec
from logeval.policies.setting import Setting
from logeval.running.seeds import generator
from logeval.running.work import run_tasks
from logeval.storage.schemas import RUNS
from logeval.storage.tables import read_manifest, read_table, there_is
from logeval.tracks.registry import TRACKS

if TYPE_CHECKING:
    from logeval.evaluation.evaluate import Evaluate


def simulate(asked: Evaluate) -> Runs:
    """Run what is not there yet."""
    simulators = simulators_of(asked)
    plan = _plan(asked, simulators)
    if asked.workers > 1 or asked.scheduler is not None:
        _check_importable(plan.policies)
    _check_makeable(plan)
    problems = plan.problems
    facts = [
        *simulators.facts(problems),
        *plan.feedback.facts(),
        *order_facts(plan.policies, problems),
    ]
    run_all = partial(
        run_tasks,
        run_unit,
        workers=asked.workers,
        scheduler=asked.scheduler,
        unit="searches",
        quiet=asked.quiet,
    )
    known, about = plan.problem_table(), simulators.known(asked.draws)
    names = asked.names.of_queries(fitted.query for fitted in simulators.fitted.queries)
    if asked.out is None:
        units = plan.units(workers=asked.workers)
        rows = against_best_known(pa.concat_tables([RUNS.empty_table(), *run_all(units)]))
        return Runs(rows, asked.seed, None, known, facts, about, names)
    store = Store(asked.out)
    with store.held():
        store.open(plan, simulators.fitted, facts, about, names)
        units = plan.units(store.done(), asked.workers)
        with contextlib.closing(run_all(units)) as finished:
            for rows in finished:
                store.add(rows)
        store.merge(known)
        rows = store.rows(plan.keys())
        return Runs(rows, asked.seed, store.folder, known, facts, about, names)


def _check_makeable(plan: Plan) -> None:
    """A policy that asks for what a simulator cannot give is refused before anything runs."""
    for spec in plan.policies:
        if not spec.built_in or spec.track is None:
            continue
        here = [p for p in plan.problems if p.track == spec.track]
        for simulator in dict.fromkeys(p.simulator for p in here):
            mine = [p for p in here if p.simulator == simulator]
            largest = max(range(len(mine)), key=lambda i: mine[i].size)
            one = TRACKS[spec.track].environment(mine, [(largest, 0)], plan.seed)
            check = generator(plan.seed, "check")
            spec.make(Setting.of(one, plan.checkpoints[-1], [check]))


def missing_runs(asked: Evaluate, out: Path) -> str | None:
    """Why ``out`` does not hold all runs that are asked for; None if it does."""
    if not there_is(out):
        return "there is no output yet"
    if Store(out).units.exists():
        return "a process was killed while it merged its runs"
    plan = _plan(asked, simulators_of(asked))
    if own := [spec.name for spec in plan.policies if not spec.built_in]:
        return f"{own[0]} is a class of your own, whose code may have changed"
    wanted = set(plan.keys())
    try:
        manifest = read_manifest(out)
        if (made_by := manifest["version"]) != __version__:
            return f"it was made by logeval {made_by}"
        missing = wanted - keys_of(read_table(out, "runs"))
    except LogevalError as error:
        return str(error).partition(";")[0]
    return f"{len(missing)} of {len(wanted)} runs are missing" if missing else None


def _plan(asked: Evaluate, simulators: Simulators) -> Plan:
    specs = in_tracks(asked.specs(simulators.track), asked.track, simulators.track)
    tracks = [name for name in TRACKS if any(spec.track == name for spec in specs)]
    problems = tuple(p for name in tracks for p in simulators.problems(name))
    feedback = Feedback.parse(asked.corrupt, asked.delay)
    if not feedback.is_plain and tracks != ["ranking"]:
        raise LogevalError("corrupt and delay: are of policies of the ranking track")
    if feedback.delay or feedback.lost:
        for spec in specs:
            check_late(spec.name, spec.cls)
    check_runs(asked.runs, sum(p.track == spec.track for p in problems for spec in specs))
    return Plan(
        problems=problems,
        policies=tuple(specs),
        runs=asked.runs,
        checkpoints=checkpoints_of(asked.horizon, asked.checkpoints),
        seed=asked.seed,
        feedback=feedback,
    )


def _check_importable(policies: tuple[PolicySpec, ...]) -> None:
    """Workers import a policy; they cannot import one that exists in a notebook only."""
    if hasattr(sys.modules["__main__"], "__file__"):
        return
    own = [policy.name for policy in policies if policy.cls.__module__ == "__main__"]
    if own:
        raise LogevalError(
            f"policy {own[0]}: workers cannot import it from a notebook; save the class in a file "
            f'and give "file:{own[0]}", or use one worker'
        )
