"""Runs any experiment of any paper, and all of them.

With a folder the runs are kept as they grow: the same call goes on where an earlier one stopped.
The folder has ``runs/PART`` (or ``runs/PART@LOG``), ``models/PART@LOG``, and ``experiments.json``
(see ``records``).
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from logeval.clicks.fit import fit_models
from logeval.errors import LogevalError
from logeval.evaluation.evaluate import evaluate
from logeval.features.make import make_features
from logeval.papers.experiment import Experiment, OnLog, Part
from logeval.papers.outcome import Fitted, Outcome
from logeval.papers.records import records, write_records
from logeval.papers.registry import named
from logeval.storage.locks import holding

WAIT_SECONDS = 30.0  # for another command that writes its record


@dataclass(frozen=True)
class How:
    """How experiments are run; ``horizon`` and ``runs`` replace what ``scale`` gives."""

    out: Path | None = None
    scale: float = 1.0
    horizon: int | None = None
    runs: int | None = None
    workers: int = 1
    seed: int = 0
    quiet: bool = False

    def size(self, experiment: Experiment) -> tuple[int, int]:
        """Horizon and runs."""
        if not 0.0 < self.scale <= 1.0:
            raise LogevalError(f"scale={self.scale:g}: must be above 0 and at most 1")
        horizon, runs = experiment.scaled(self.scale)
        return (
            horizon if self.horizon is None else self.horizon,
            runs if self.runs is None else self.runs,
        )


def reproduce(
    experiment: Experiment, log: Path | str | None = None, how: How | None = None
) -> Outcome:
    """Run an experiment; those of a log need the folder of an ingested one."""
    how = how or How()
    horizon, runs = how.size(experiment)
    if experiment.needs_log and log is None:
        raise LogevalError(
            f"{experiment.name} needs an ingested log; `logeval generate` and "
            "`logeval ingest` make one"
        )
    log = Path(log) if experiment.needs_log and log is not None else None
    outcome = Outcome(experiment, horizon, runs, log.resolve().name if log else "")
    with _recorded(outcome, log, how):
        for part in experiment.parts:
            _run_part(outcome, part, log, how)
    return outcome


def reproduce_all(
    experiments: Sequence[Experiment], logs: Sequence[Path | str], how: How
) -> Iterator[Outcome]:
    """Every experiment, the quick ones first; those of a log on each of the logs.

    What a log cannot give (users, enough queries) is no reason to stop: such an outcome says why.
    """
    for experiment in sorted(experiments, key=lambda e: e.seconds):
        for log in logs if experiment.needs_log else [None]:
            try:
                yield reproduce(experiment, log, how)
            except LogevalError as error:
                if log is None:
                    raise
                horizon, runs = how.size(experiment)
                name = Path(log).resolve().name
                yield Outcome(experiment, horizon, runs, name, refused=_without_path(error, log))


def _run_part(outcome: Outcome, part: Part, log: Path | None, how: How) -> None:
    place = f"{part.name}@{outcome.log}" if isinstance(part.users, OnLog) else part.name
    more: dict[str, Any] = {
        "policies": part.policies,
        "horizon": outcome.horizon,
        "runs": _runs_of(outcome, part),
        "workers": how.workers,
        "seed": how.seed,
        "quiet": how.quiet,
        "out": None if how.out is None else how.out / "runs" / place,
    }
    if not isinstance(part.users, OnLog):
        outcome.runs[part.name] = evaluate(problem=part.users.problems, **more)
        return
    assert log is not None
    users, folder = part.users, None
    if how.out is not None:
        folder = how.out / "models" / place
    models = fit_models(
        log, users.model, top_queries=users.top_queries, out=folder, seed=how.seed,
        quiet=how.quiet, **users.fit,
    )  # fmt: skip
    outcome.fits[part.name] = models.named()
    changed = users.change or (lambda model: model)
    triples = [(name, query, changed(model)) for name, query, model in models]
    outcome.models[part.name] = [Fitted(str(query), model) for _, query, model in triples]
    if not part.policies:
        return
    if users.features is not None:
        features = make_features(
            log, top_queries=users.top_queries, seed=how.seed, quiet=how.quiet, **users.features
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
def _recorded(outcome: Outcome, log: Path | None, how: How) -> Iterator[None]:
    """Measure the time, by the clock and of all processes, and add it to what was spent before."""
    if how.out is not None:
        records(how.out)  # an error now, and not after hours
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
        if how.out is not None:
            _record(outcome, log, how, done, refused)


def _record(outcome: Outcome, log: Path | None, how: How, done: bool, refused: str) -> None:
    """Write down what was run; others may be at work on other experiments in the same folder."""
    assert how.out is not None
    size = {"horizon": outcome.horizon, "runs": outcome.n_runs, "seed": how.seed}
    how.out.mkdir(parents=True, exist_ok=True)
    with holding(how.out, "reproduce", seconds=WAIT_SECONDS):
        known = records(how.out)
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
        write_records(how.out, known)


def finished(out: Path, quiet: bool = False) -> Iterator[Outcome]:
    """The outcomes that a folder has, whatever their sizes; what is not finished says so."""
    for record in records(out).values():
        experiment, log = named(record["experiment"]), record["log"]
        size = record["horizon"], record["runs"]
        if record["finished"]:
            how = How(out, 1.0, *size, seed=record["seed"], quiet=quiet)
            yield reproduce(experiment, log, how)
        else:
            name = Path(log).name if log else ""
            yield Outcome(experiment, *size, name, refused=record.get("refused") or "not finished")


def _without_path(error: LogevalError, log: Path | str | None) -> str:
    """The message, with the name of the log instead of its path."""
    text = str(error)
    return text if log is None else text.replace(str(log), Path(log).resolve().name)


def _cpu() -> float:
    """Processor seconds of this process and of its workers that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
