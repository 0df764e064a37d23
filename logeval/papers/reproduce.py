"""``reproduce``: the experiments of the papers again."""

import sys
from collections.abc import Sequence
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Union

from logeval.errors import LogevalError
from logeval.stage import Arg, Quiet, Seed, Stage, function, stage

if TYPE_CHECKING:
    from logeval.papers.shared.experiment import Experiment
    from logeval.papers.shared.outcome import Outcome

NEEDS_LOG = "an ingested log{}; `logeval generate` and `logeval ingest` make one"


def experiment_names(incomplete: str) -> list[str]:
    """The experiments whose names start so."""
    from logeval.papers.registry import EXPERIMENTS

    return [name for name in (*EXPERIMENTS, "list", "all", "page") if name.startswith(incomplete)]


@stage(
    "reproduce",
    example="logeval reproduce all --log data/yandex --workers 2 --out reproduction",
)
class Reproduce(Stage[list["Outcome"]]):
    """Run published experiments again: ours beside the published, and a verdict.
    `list` names them, `dcm-3b --scale 0.1` is a quick look at one of them.

    With a folder the runs are kept as they grow: the same call goes on where an earlier one
    stopped. ``horizon`` and ``runs`` replace what ``scale`` gives.
    """

    experiment: Annotated[
        Union[str, "Experiment"],
        Arg(
            "An experiment as dcm-3c; list: all their names; all: all of them; page: nothing "
            "is run, the page of what --out has.",
            complete=experiment_names,
        ),
    ]
    _: KW_ONLY
    log: Annotated[
        Sequence[Path | str] | Path | str | None,
        Arg("An ingested log, for those that need one; with all, several.", "input"),
    ] = None
    scale: Annotated[float, Arg("A part of the paper's size: fewer runs, then fewer steps.")] = 1.0
    horizon: Annotated[int | None, Arg("Steps; default: the paper's.")] = None
    runs: Annotated[int | None, Arg("Runs; default: the paper's.")] = None
    workers: Annotated[int, Arg("Processes on this machine.", "running")] = 1
    seed: Seed = 0
    out: Annotated[
        Path | None,
        Arg("Folder of runs, models and the page; an unfinished one goes on.", "output"),
    ] = None
    markdown: Annotated[
        Path | None, Arg("Write the page as markdown as well, to this file.", "output")
    ] = None
    quiet: Quiet = False

    def check(self) -> None:
        """The size, and what is needed before the long part starts."""
        if not 0.0 < self.scale <= 1.0:
            raise LogevalError(f"scale={self.scale:g}: must be above 0 and at most 1")
        if self.experiment == "all":
            if self.out is None:
                raise LogevalError(
                    "reproduce all takes long: give out=FOLDER, so that it can go on later"
                )
            if not self.logs:
                raise LogevalError(f"reproduce all needs {NEEDS_LOG.format(': give one')}")
        elif len(self.logs) > 1:
            raise LogevalError("one experiment runs on one log; give several with all")

    @property
    def logs(self) -> list[Path]:
        """The logs."""
        given = [self.log] if isinstance(self.log, str | Path) else self.log or []
        return [Path(log) for log in given]

    def size(self, experiment: "Experiment") -> tuple[int, int]:
        """Horizon and runs."""
        horizon, runs = experiment.scaled(self.scale)
        return (
            horizon if self.horizon is None else self.horizon,
            runs if self.runs is None else self.runs,
        )

    def run(self) -> "list[Outcome]":
        """What came out: of one experiment, of all of them, or of those that the folder has."""
        from logeval.log.log import load
        from logeval.papers.registry import EXPERIMENTS, in_order, named
        from logeval.papers.runner import finished, run_all, run_one

        if self.experiment == "list":
            return []
        if self.experiment == "page":
            return in_order(finished(self))
        if self.experiment != "all":
            return [run_one(named(self.experiment), next(iter(self.logs), None), self)]
        for log in self.logs:
            load(log)  # before the long part
        outcomes = []
        for outcome in run_all(EXPERIMENTS.values(), self):
            outcomes.append(outcome)
            if not self.quiet:
                print(f"{outcome.name}: {outcome.refused or 'done'}", file=sys.stderr)
        return in_order(outcomes)


reproduce = function(Reproduce)
