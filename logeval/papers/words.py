"""Numbers and verdicts as people read them: for the terminal, the page and the markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from logeval.papers.outcome import Outcome
from logeval.papers.registry import EXPERIMENTS, seconds
from logeval.papers.verdicts import SHORTER, VARIANT, Judged, together, verdict_of
from logeval.running.words import rounded, with_error

COLUMNS = ["claim", "ours", "published", "standard errors", "verdict"]
INDEPENDENT = ["not published", "ours", "independent program", "standard errors", "verdict"]


def published(one: Judged) -> str:
    """What the paper says: a number, or the ends of its words."""
    claim = one.claim
    low, high = claim.interval
    if claim.is_number:
        return with_error(low, claim.stderr)
    if math.isinf(low):
        ends = f"at most {rounded(high)}"
    elif math.isinf(high):
        ends = f"at least {rounded(low)}"
    else:
        ends = rounded(low) if low == high else f"{rounded(low)} to {rounded(high)}"
    told = claim.published
    return ends if told is None or told in (low, high) else f"{rounded(told)} ({ends})"


def row(one: Judged) -> list[str]:
    """A claim, or a variant of one, in the columns ``COLUMNS``."""
    distance = "" if one.distance != one.distance else f"{one.distance:+.1f}"
    explained = one.claim.reason and not one.holds and one.verdict != SHORTER
    reason = f" ({one.claim.reason})" if explained else ""
    said = f"{one.claim.text} [{place(one)}]"
    ours = with_error(one.ours.value, one.ours.stderr)
    if one.others:
        ours += f"; the others {_range(one.others)}"
    if one.verdict == VARIANT:
        return [f"- variant: {one.case}", ours, "", "", ""]
    if one.others:
        said += f"; hardest of {1 + len(one.others)}: {one.case}"
    return [said, ours, published(one), distance, one.verdict + reason]


def _range(values: Sequence[float]) -> str:
    low, high = rounded(min(values)), rounded(max(values))
    return low if low == high else f"{low} to {high}"


def halves(found: Sequence[Judged]) -> list[tuple[bool, list[str], list[list[str]]]]:
    """Columns and rows of what is published, and of what independent programs found."""
    parts = []
    for is_published, columns in ((True, COLUMNS), (False, INDEPENDENT)):
        rows = [row(one) for one in found if one.claim.is_published == is_published]
        if rows:
            parts.append((is_published, columns, rows))
    return parts


def joint_test(found: Sequence[Judged]) -> list[str]:
    """The joint test of many numbers, in a sentence."""
    all_of_them = together(found)
    if all_of_them is None:
        return []
    n, chi_squared, p, mean, below = all_of_them
    return [
        f"All {n} numbers together: chi squared {chi_squared:.0f} on {n} (p "
        + ("below 0.0001" if p < 1e-4 else f"= {p:.2g}")
        + f"), the mean distance is {mean:+.2f} ± {1 / math.sqrt(n):.2f} standard errors, and "
        f"{below} of ours are lower: "
        + ("they differ by more than chance." if all_of_them.differ else "no more than chance.")
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
    return claim.place if claim.is_published else f"{claim.place}, {claim.source}"


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
