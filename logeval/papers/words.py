"""Numbers and verdicts as people read them: for the terminal, the page and the markdown."""

from __future__ import annotations

import math

from logeval.papers.outcome import Outcome
from logeval.papers.registry import EXPERIMENTS, seconds
from logeval.papers.verdicts import Judged, verdict_of

COLUMNS = ["claim", "ours", "published", "standard errors", "verdict"]


def number(value: float) -> str:
    """With places by its size.

    >>> [number(x) for x in (123456.7, 1234.5, 12.345, 0.4567)]
    ['123,457', '1,234', '12.3', '0.46']
    """
    if value != value:
        return ""
    size = abs(value)
    return f"{value:,.{0 if size >= 1000 else 1 if size >= 10 else 2}f}"


def with_error(value: float, error: float) -> str:
    """Value and standard error."""
    return number(value) if error != error or not error else f"{number(value)} ± {number(error)}"


def published(one: Judged) -> str:
    """What the paper says: a number, or the ends of its words."""
    claim = one.claim
    low, high = claim.interval
    if claim.is_number:
        return with_error(low, claim.stderr)
    if math.isinf(low):
        ends = f"at most {number(high)}"
    elif math.isinf(high):
        ends = f"at least {number(low)}"
    else:
        ends = number(low) if low == high else f"{number(low)} to {number(high)}"
    told = claim.published
    return ends if told is None or told in (low, high) else f"{number(told)} ({ends})"


def row(one: Judged) -> list[str]:
    """A claim in the columns ``COLUMNS``."""
    distance = "" if one.distance != one.distance else f"{one.distance:+.1f}"
    reason = f" ({one.claim.reason})" if one.claim.reason and not one.holds else ""
    return [
        f"{one.claim.text} [{place(one)}]",
        with_error(one.ours.value, one.ours.stderr),
        published(one),
        distance,
        one.verdict + reason,
    ]


def summary_row(outcome: Outcome, found: list[Judged]) -> list[str]:
    """An experiment in a line: name, paper, log, verdict, size, time."""
    return [
        outcome.experiment.name,
        f"{outcome.experiment.paper}, {outcome.experiment.place}",
        outcome.log,
        f"not run: {outcome.refused}" if outcome.refused else verdict_of(found),
        "" if outcome.refused else size(outcome),
        "" if outcome.refused else minutes(outcome.cpu_seconds),
    ]


SUMMARY = ["experiment", "place", "log", "verdict", "size", "CPU minutes"]


def size(outcome: Outcome) -> str:
    """Steps and runs; less than the paper's is said."""
    if not outcome.runs:
        return ""
    said = f"{outcome.horizon:,} steps, {outcome.n_runs} runs"
    return said if outcome.at_full_size else f"{said}; less than the paper's"


def minutes(seconds: float) -> str:
    """Minutes with one place below ten."""
    return f"{seconds / 60:.1f}" if seconds < 600 else f"{seconds / 60:.0f}"


def place(one: Judged) -> str:
    """Where it is said; of numbers that are not of the paper, by whom."""
    claim = one.claim
    return claim.place if claim.source in ("paper", "theory") else f"{claim.place}, {claim.source}"


def listing() -> tuple[list[str], list[list[object]]]:
    """All experiments, as a table."""
    columns = ["experiment", "place", "needs", "steps", "runs", "minutes"]
    rows: list[list[object]] = [
        [
            e.name,
            f"{e.paper}, {e.place}",
            "a log" if e.needs_log else "nothing",
            e.horizon,
            e.runs,
            minutes(e.seconds),
        ]
        for e in EXPERIMENTS.values()
    ]
    return columns, rows


def total() -> str:
    """The expected time of all."""
    spent = seconds(EXPERIMENTS.values())
    return (
        f"minutes are of one core; all together {minutes(spent)}, about {minutes(spent / 2)} on "
        "two cores (runs that two figures share are counted once)"
    )
