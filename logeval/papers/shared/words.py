"""Numbers and verdicts as people read them: for the terminal, the page and the markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from logeval.papers.shared.experiment import Claim
from logeval.papers.shared.outcome import Outcome
from logeval.papers.shared.verdicts import SHORTER, VARIANT, Judged, verdict_of
from logeval.running.words import rounded, with_error

COLUMNS = ["claim", "ours", "published", "standard errors", "verdict"]
INDEPENDENT = ["not published", "ours", "independent program", "standard errors", "verdict"]


def published(claim: Claim) -> str:
    """What the paper says: a number, or the bounds of its words."""
    low, high = claim.interval
    if claim.is_number:
        return with_error(low, claim.stderr)
    if math.isinf(low):
        bounds = f"at most {rounded(high)}"
    elif math.isinf(high):
        bounds = f"at least {rounded(low)}"
    else:
        bounds = _range((low, high))
    value = claim.published
    return bounds if value is None or value in (low, high) else f"{rounded(value)} ({bounds})"


def row(one: Judged) -> list[str]:
    """A claim, or a variant of one, in the columns ``COLUMNS``."""
    distance = "" if one.distance != one.distance else f"{one.distance:+.1f}"
    explained = one.claim.reason and not one.holds and one.verdict != SHORTER
    reason = f" ({one.claim.reason})" if explained else ""
    by = "" if one.claim.is_published else f", {one.claim.source}"
    said = f"{one.claim.text} [{one.claim.place}{by}]"
    ours = with_error(one.ours.value, one.ours.stderr)
    if one.others:
        ours += f"; the others {_range(one.others)}"
    if one.verdict == VARIANT:
        return [f"- variant: {one.case}", ours, "", "", ""]
    if one.others:
        said += f"; hardest of {1 + len(one.others)}: {one.case}"
    return [said, ours, published(one.claim), distance, one.verdict + reason]


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


def summary_row(outcome: Outcome) -> list[str]:
    """An experiment in a line: name, paper, log, verdict, size, time."""
    return [
        outcome.experiment.name,
        f"{outcome.experiment.paper}, {outcome.experiment.place}",
        outcome.log,
        f"not run: {outcome.refused}" if outcome.refused else verdict_of(outcome.judged),
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
