"""All experiments by name, paper by paper."""

from __future__ import annotations

from collections.abc import Iterable

from logeval.errors import unknown_names
from logeval.papers import cascading, changing, dcm, dcm_log, gl_cdcm, modern, rank1, rank1_log
from logeval.papers.shared.experiment import Experiment
from logeval.papers.shared.outcome import Outcome

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for paper in (cascading, dcm, dcm_log, rank1, rank1_log, gl_cdcm, modern, changing)
    for experiment in paper.EXPERIMENTS
}


def seconds(experiments: Iterable[Experiment]) -> float:
    """Of one core, for all of them; runs that two share are counted once."""
    shared = {frozenset(part.name for part in e.parts): e.seconds for e in experiments}
    return sum(shared.values())


def in_order(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Paper by paper, and log by log."""
    place = {name: i for i, name in enumerate(EXPERIMENTS)}
    return sorted(outcomes, key=lambda outcome: place[outcome.experiment.name])


def named(name: str | Experiment) -> Experiment:
    """The experiment of that name."""
    if isinstance(name, Experiment):
        return name
    if name not in EXPERIMENTS:
        raise unknown_names("experiment", [name], [*EXPERIMENTS, "list", "all", "page"])
    return EXPERIMENTS[name]
