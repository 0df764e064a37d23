"""What came out of an experiment: the runs and models of its parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from logeval.clicks.fitted import FittedModel
from logeval.errors import LogevalError
from logeval.evaluation.results import Runs
from logeval.papers.shared.experiment import Cell, Experiment
from logeval.papers.shared.verdicts import Judged, judged, together
from logeval.running.arrays import Floats


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
    seconds: float = 0.0  # by the clock
    cpu_seconds: float = 0.0
    refused: str = ""  # why it could not be run

    @property
    def name(self) -> str:
        """The experiment, with the log that it was run on."""
        return f"{self.experiment.name}@{self.log}" if self.log else self.experiment.name

    @property
    def file_name(self) -> str:
        """The same as a name of files."""
        return self.name.replace("@", "-on-")

    @property
    def title(self) -> str:
        """The experiment and where it is published."""
        experiment = self.experiment
        log = f", on {self.log}" if self.log else ""
        return f"{experiment.name}: {experiment.paper}, {experiment.place}{log}"

    @cached_property
    def judged(self) -> list[Judged]:
        """The verdicts on its claims."""
        return [] if self.refused else judged(self)

    @property
    def facts(self) -> list[str]:
        """The joint test of many numbers, and what else was found, in sentences."""
        all_numbers, more = together(self.judged), self.experiment.facts
        found = [] if all_numbers is None else [str(all_numbers)]
        return found if self.refused or more is None else found + more(self)

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
        name = cell.part or next(iter(self.runs))
        run = {a: b for p in self.experiment.parts if p.name == name for a, b in p.names.items()}
        keep = rows["policy"] == run.get(cell.policy, cell.policy)
        if cell.simulator is not None:
            keep &= rows["simulator"] == cell.simulator
        if cell.query is not None:
            keep &= rows["query"] == cell.query
        if not keep.any():
            raise LogevalError(f"{self.name}: there are no runs of {cell}")
        return rows[keep]
