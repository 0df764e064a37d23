"""Runs any experiment of any paper, and all of them.

A folder has ``runs/PART`` (or ``runs/PART@LOG``), ``models/PART@LOG``, and ``experiments.json``
(see ``records``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from logeval.clicks.fit import fit_models
from logeval.errors import LogevalError
from logeval.evaluation.evaluate import evaluate
from logeval.features.make import make_features
from logeval.papers.registry import named
from logeval.papers.reproduce import NEEDS_LOG, Reproduce
from logeval.papers.shared.experiment import Experiment, OnLog, Part
from logeval.papers.shared.outcome import Outcome
from logeval.papers.shared.records import records, write_records
from logeval.storage.files import holding

WAIT_SECONDS = 30.0  # for another command that writes its record


def run_one(experiment: Experiment, log: Path | None, asked: Reproduce) -> Outcome:
    """Run an experiment; those of a log need the folder of an ingested one."""
    if experiment.needs_log and log is None:
        raise LogevalError(f"{experiment.name} needs {NEEDS_LOG.format('')}")
    log = log if experiment.needs_log else None
    outcome = Outcome(experiment, *asked.size(experiment), log.resolve().name if log else "")
    with _recorded(outcome, log, asked):
        for part in experiment.parts:
            _run_part(outcome, part, log, asked)
    return outcome


def run_all(experiments: Iterable[Experiment], asked: Reproduce) -> Iterator[Outcome]:
    """Every experiment, the quick ones first; those of a log on each of the logs.

    What a log cannot give (users, enough queries) is no reason to stop: such an outcome says why.
    """
    for experiment in sorted(experiments, key=lambda e: e.seconds):
        for log in asked.logs if experiment.needs_log else [None]:
            try:
                yield run_one(experiment, log, asked)
            except LogevalError as error:
                if log is None:
                    raise
                refused, name = _without_path(error, log), log.resolve().name
                yield Outcome(experiment, *asked.size(experiment), name, refused=refused)


def _run_part(outcome: Outcome, part: Part, log: Path | None, asked: Reproduce) -> None:
    place = f"{part.name}@{outcome.log}" if isinstance(part.users, OnLog) else part.name
    more: dict[str, Any] = {
        "policies": part.policies,
        "horizon": outcome.horizon,
        "runs": _runs_of(outcome, part),
        "workers": asked.workers,
        "seed": asked.seed,
        "quiet": asked.quiet,
        "out": None if asked.out is None else asked.out / "runs" / place,
    }
    users = part.users
    if not isinstance(users, OnLog):
        outcome.runs[part.name] = evaluate(problem=users, **more)
        return
    assert log is not None
    folder = None if asked.out is None else asked.out / "models" / place
    models = fit_models(
        log, users.model, top_queries=users.top_queries, out=folder, seed=asked.seed,
        quiet=asked.quiet, **users.fit,
    )  # fmt: skip
    outcome.fits[part.name] = models.named()
    changed = users.change or (lambda model: model)
    triples = [(name, query, changed(model)) for name, query, model in models]
    outcome.models[part.name] = {str(query): model for _, query, model in triples}
    if not part.policies:
        return
    if users.features is not None:
        features = make_features(
            log, top_queries=users.top_queries, seed=asked.seed, quiet=asked.quiet, **users.features
        )
        outcome.runs[part.name] = evaluate(models, features=features, **more)
    else:
        outcome.runs[part.name] = evaluate(triples if users.change else models, **more)


def _runs_of(outcome: Outcome, part: Part) -> int:
    """A part with more runs than its experiment keeps the ratio."""
    if part.runs is None:
        return outcome.n_runs
    return max(1, round(part.runs * outcome.n_runs / outcome.experiment.runs))


@contextmanager
def _recorded(outcome: Outcome, log: Path | None, asked: Reproduce) -> Iterator[None]:
    """Measure the time, by the clock and of all processes, and add it to what was spent before."""
    if asked.out is not None:
        records(asked.out)  # an error now, and not after hours
    start, cpu = time.perf_counter(), _cpu()
    done, refused = False, ""
    try:
        yield
        done = True
    except LogevalError as error:
        refused = _without_path(error, log)
        raise
    finally:
        outcome.seconds, outcome.cpu_seconds = time.perf_counter() - start, _cpu() - cpu
        if asked.out is not None:
            _record(outcome, log, asked, done, refused)


def _record(outcome: Outcome, log: Path | None, asked: Reproduce, done: bool, refused: str) -> None:
    """Write down what was run; others may be at work on other experiments in the same folder."""
    out = asked.out
    assert out is not None
    size = {"horizon": outcome.horizon, "runs": outcome.n_runs, "seed": asked.seed}
    out.mkdir(parents=True, exist_ok=True)
    with holding(out, "reproduce", seconds=WAIT_SECONDS):
        known = records(out)
        before = known.get(outcome.name, {"seconds": 0.0, "cpu_seconds": 0.0, "finished": False})
        if before["finished"] and all(before[key] == size[key] for key in size):
            outcome.seconds = outcome.cpu_seconds = 0.0  # nothing was left to do but to read
            done = True
        outcome.seconds += before["seconds"]
        outcome.cpu_seconds += before["cpu_seconds"]
        known[outcome.name] = {
            "experiment": outcome.experiment.name,
            "log": None if log is None else str(log.resolve()),
            **size,
            "seconds": outcome.seconds,
            "cpu_seconds": outcome.cpu_seconds,
            "finished": done,
            "refused": refused,
        }
        write_records(out, known)


def finished(asked: Reproduce) -> Iterator[Outcome]:
    """The outcomes that a folder has, whatever their sizes; what is not finished says so."""
    known = {} if asked.out is None else records(asked.out)
    if not known:
        raise LogevalError(
            "there is nothing to show: give a folder that reproduce wrote, out=FOLDER"
        )
    for record in known.values():
        experiment, log = named(record["experiment"]), record["log"]
        horizon, runs = record["horizon"], record["runs"]
        if record["finished"]:
            again = asked.replace(seed=record["seed"], horizon=horizon, runs=runs)
            yield run_one(experiment, None if log is None else Path(log), again)
        else:
            name, refused = Path(log).name if log else "", record.get("refused") or "not finished"
            yield Outcome(experiment, horizon, runs, name, refused=refused)


def _without_path(error: LogevalError, log: Path | str | None) -> str:
    """The message, with the name of the log instead of its path."""
    text = str(error)
    return text if log is None else text.replace(str(log), Path(log).resolve().name)


def _cpu() -> float:
    """Processor seconds of this process and of its workers that have ended."""
    return sum(os.times()[:4])
