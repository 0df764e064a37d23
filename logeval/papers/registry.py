"""All experiments by name, paper by paper."""

from __future__ import annotations

from collections.abc import Iterable

from logeval.errors import unknown_names
from logeval.papers import cascading, dcm, gl_cdcm, modern, rank1
from logeval.papers.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for paper in (cascading, dcm, rank1, gl_cdcm, modern)
    for experiment in paper.EXPERIMENTS
}


def seconds(experiments: Iterable[Experiment]) -> float:
    """Of one core, for all of them; runs that two share are counted once."""
    shared = {frozenset(part.name for part in e.parts): e.seconds for e in experiments}
    return sum(shared.values())


def named(name: str) -> Experiment:
    """The experiment of that name."""
    if name not in EXPERIMENTS:
        raise unknown_names("experiment", [name], [*EXPERIMENTS, "list", "all"])
    return EXPERIMENTS[name]
