"""What came out of an experiment: the runs and models of its parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from logeval.clicks.fitted import FittedModel
from logeval.errors import LogevalError
from logeval.evaluation.results import Runs
from logeval.papers.experiment import Experiment
from logeval.running.arrays import Floats


class Cell(NamedTuple):
    """A policy on a simulator of a part; the first part and its only simulator by default."""

    policy: str
    simulator: str | None = None
    part: str | None = None
    query: str | None = None


class Fitted(NamedTuple):
    """The model of a query."""

    query: str
    model: Any


@dataclass
class Outcome:
    """An experiment that was run, or the reason why it was not."""

    experiment: Experiment
    horizon: int
    n_runs: int
    log: str = ""  # what the log is called
    runs: dict[str, Runs] = field(default_factory=dict)  # by part
    models: dict[str, list[Fitted]] = field(default_factory=dict)  # by part
    fits: dict[str, FittedModel] = field(default_factory=dict)  # by part, as fitted
    seconds: float = 0.0  # by the clock
    cpu_seconds: float = 0.0
    refused: str = ""  # why it could not be run

    @property
    def name(self) -> str:
        """The experiment, with the log that it was run on."""
        return f"{self.experiment.name}@{self.log}" if self.log else self.experiment.name

    @property
    def at_full_horizon(self) -> bool:
        """Whether it has the steps of the paper."""
        return self.horizon == self.experiment.horizon

    @property
    def at_full_size(self) -> bool:
        """Whether it has the steps and at least the runs of the paper."""
        return self.at_full_horizon and self.n_runs >= self.experiment.runs

    def part(self, name: str | None = None) -> Runs:
        """The runs of a part; by default of the first."""
        return self.runs[name or next(iter(self.runs))]

    def regret(self, cell: Cell, share: float = 1.0) -> Floats:
        """(runs,) regret at the horizon, or a share of it: the mean over queries, run by run."""
        rows = self.rows(cell)
        steps = np.unique(rows["t"])
        t = steps[np.abs(steps - share * self.horizon).argmin()]
        by_run = rows[rows["t"] == t].groupby("run")["regret"].mean()
        return by_run.to_numpy(dtype=float)

    def rows(self, cell: Cell) -> pd.DataFrame:
        """The rows of a cell in the runs table."""
        rows = self.part(cell.part).table()
        keep = rows["policy"] == cell.policy
        if cell.simulator is not None:
            keep &= rows["simulator"] == cell.simulator
        if cell.query is not None:
            keep &= rows["query"] == cell.query
        if not keep.any():
            raise LogevalError(f"{self.name}: there are no runs of {cell}")
        return rows[keep]
