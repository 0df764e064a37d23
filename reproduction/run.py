"""Runs any experiment of any paper, and all of them.

A folder has ``runs/PART`` (or ``runs/PART@LOG``) and ``models/PART@LOG``. The same call goes on
where an earlier one stopped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from logeval import LogevalError, Runs, evaluate, fit_models, make_features
from logeval.clicks.fitted import FittedModel
from logeval.running.arrays import Floats
from reproduction.data import Experiment, Part
from reproduction.measures import two_queries
from reproduction.verdicts import Judged, judged

NEEDS_LOG = "an ingested log{}; `logeval generate` and `logeval ingest` make one"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """How to run; ``horizon`` and ``runs`` replace what ``scale`` gives."""

    logs: Sequence[Path] = ()
    scale: float = 1.0
    horizon: int | None = None
    runs: int | None = None
    workers: int = 1
    seed: int = 0
    out: Path | None = None
    quiet: bool = True

    def __post_init__(self) -> None:
        if not 0.0 < self.scale <= 1.0:
            raise LogevalError(f"scale={self.scale:g}: must be above 0 and at most 1")

    def size(self, experiment: Experiment) -> tuple[int, int]:
        horizon, runs = experiment.scaled(self.scale)
        own = self.horizon, self.runs
        return horizon if own[0] is None else own[0], runs if own[1] is None else own[1]


@dataclass
class Outcome:
    """An experiment that was run, or the reason why it was not."""

    experiment: Experiment
    horizon: int
    n_runs: int
    log: str = ""  # what the log is called
    runs: dict[str, Runs] = field(default_factory=dict)  # by part
    models: dict[str, dict[str, Any]] = field(default_factory=dict)  # by part and query
    fits: dict[str, FittedModel] = field(default_factory=dict)  # by part, as fitted
    refused: str = ""  # why it could not be run

    @property
    def name(self) -> str:
        """The experiment, with the log that it was run on."""
        return f"{self.experiment.name}@{self.log}" if self.log else self.experiment.name

    @cached_property
    def judged(self) -> list[Judged]:
        return [] if self.refused else judged(self)

    @property
    def at_full_horizon(self) -> bool:
        return self.horizon == self.experiment.horizon

    def regret(self, cell: str, share: float = 1.0, query: str = "") -> Floats:
        """(runs,) regret at the horizon, or a share of it: the mean over queries, run by run."""
        rows = self.rows(cell, query)
        steps = np.unique(rows["t"])
        t = steps[np.abs(steps - share * self.horizon).argmin()]
        by_run = rows[rows["t"] == t].groupby("run")["regret"].mean()
        return by_run.to_numpy(dtype=float)

    def rows(self, cell: str, query: str = "") -> pd.DataFrame:
        """The rows of a cell (``policy @ part``, problem or query) in the runs table.

        A problem that several parts have is taken from the one with the most runs.
        """
        policy, _, where = cell.partition(" @ ")
        if where.startswith("Query "):
            where, query = "", two_queries(self)[int(where.removeprefix("Query ")) - 1]
        parts = [p for p in self.experiment.parts if p.name in self.runs and policy in p.names]
        if where in self.runs:
            parts = [p for p in parts if p.name == where]
        elif where:
            parts = [p for p in parts if where in p.problems]
        if not parts:
            raise LogevalError(f"{self.name}: there are no runs of {cell}")
        part = max(parts, key=lambda p: p.runs or 0) if where else parts[0]
        rows = self.runs[part.name].to_pandas()
        keep = rows["policy"] == part.names[policy]
        if where in part.problems:
            keep &= rows["simulator"] == where
        return rows[keep & (rows["query"] == query)] if query else rows[keep]


def run_one(experiment: Experiment, log: Path | None, asked: Asked) -> Outcome:
    """Run an experiment; those of a log need the folder of an ingested one."""
    if experiment.needs_log and log is None:
        raise LogevalError(f"{experiment.name} needs {NEEDS_LOG.format('')}")
    log = log if experiment.needs_log else None
    outcome = Outcome(experiment, *asked.size(experiment), log.resolve().name if log else "")
    for part in experiment.parts:
        _run_part(outcome, part, log, asked)
    return outcome


def run_all(experiments: Iterable[Experiment], asked: Asked) -> Iterator[Outcome]:
    """Every experiment, the quick ones first; those of a log on each of the logs.

    What a log cannot give (users, enough queries) is no reason to stop: such an outcome says why.
    """
    for experiment in sorted(experiments, key=lambda e: e.seconds):
        for log in asked.logs if experiment.needs_log else (None,):
            try:
                yield run_one(experiment, log, asked)
            except LogevalError as error:
                if log is None:
                    raise
                name = log.resolve().name
                refused = str(error).replace(str(log), name)
                yield Outcome(experiment, *asked.size(experiment), name, refused=refused)


def _run_part(outcome: Outcome, part: Part, log: Path | None, asked: Asked) -> None:
    place = f"{part.name}@{outcome.log}" if part.model else part.name
    ratio = 1.0 if part.runs is None else part.runs / outcome.experiment.runs
    more: dict[str, Any] = {
        "policies": list(part.names.values()),
        "horizon": outcome.horizon,
        "runs": max(1, round(outcome.n_runs * ratio)),
        "workers": asked.workers,
        "seed": asked.seed,
        "quiet": asked.quiet,
        "out": None if asked.out is None else asked.out / "runs" / place,
    }
    if not part.model:
        outcome.runs[part.name] = evaluate(problem=part.problems, **more)
        return
    assert log is not None
    folder = None if asked.out is None else asked.out / "models" / place
    models = fit_models(
        log, part.model, top_queries=part.top_queries, out=folder, seed=asked.seed,
        quiet=asked.quiet, **part.fit,
    )  # fmt: skip
    outcome.fits[part.name] = models.named()
    outcome.models[part.name] = {str(query): model for _, query, model in models}
    if part.features is not None:
        more["features"] = make_features(
            log, top_queries=part.top_queries, seed=asked.seed, quiet=asked.quiet, **part.features
        )
    if part.policies:
        outcome.runs[part.name] = evaluate(models, **more)
