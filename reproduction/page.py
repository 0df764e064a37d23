"""Numbers and verdicts as people read them: markdown, for the terminal and docs/reproduction.md."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path

from logeval import __version__
from logeval.reports.figures.canvas import save_figure, styled
from logeval.running.words import rounded
from logeval.storage import files
from reproduction.data import Claim, Experiment
from reproduction.facts import facts_of
from reproduction.figures import figure_of
from reproduction.measures import with_error
from reproduction.run import Outcome
from reproduction.verdicts import SHORTER, VARIANT, Judged, verdict_of

INTRODUCTION = (
    "Every experiment of the papers again: what we measured beside what is published. Values "
    "after ± are standard errors over runs; a run draws everything anew that the seed decides. One "
    "claim has one row and one verdict, that of the paper's own method; variants (other fits, the "
    "authors' program) stand below it and have none. A published number is reproduced when ours "
    "differs by at most three standard errors of both, else the difference is given where it is at "
    "most 10%. What a text says in words has bounds, which are ours; it is reproduced when "
    "the 99% interval of ours (Student's, over the runs) lies between them, not reproduced when it "
    "lies outside, and otherwise it cannot be told. A claim about several cases must hold in "
    "each: the hardest is shown. The standard errors given are to the number, or to the nearer "
    "bound."
)
NOT_PUBLISHED = (
    "Not published: what independent programs found. Ours agrees when it differs by at most three "
    "standard errors of both."
)
COLUMNS = ["claim", "ours", "published", "standard errors", "verdict"]
INDEPENDENT = ["not published", "ours", "independent program", "standard errors", "verdict"]
SUMMARY = ["experiment", "place", "log", "verdict", "size", "CPU minutes"]
LISTED = ["experiment", "place", "needs", "steps", "runs", "minutes"]


def listed(experiments: Sequence[Experiment]) -> str:
    rows = [
        [e.name, f"{e.paper}, {e.place}", "a log" if e.needs_log else "nothing", f"{e.horizon:,}",
         str(e.runs), minutes(e.seconds)]
        for e in experiments
    ]  # fmt: skip
    spent = sum({frozenset(part.name for part in e.parts): e.seconds for e in experiments}.values())
    return (
        f"{table(LISTED, rows)}\n\nMinutes are of one core; all together {minutes(spent)}, about "
        f"{minutes(spent / 2)} on two cores (runs that two figures share are counted once)."
    )


def summary(outcomes: Sequence[Outcome]) -> str:
    return table(SUMMARY, [summary_row(outcome) for outcome in outcomes])


def summary_row(outcome: Outcome) -> list[str]:
    """An experiment in a line: name, paper, log, verdict, size, time."""
    experiment, refused = outcome.experiment, outcome.refused
    return [
        experiment.name,
        f"{experiment.paper}, {experiment.place}",
        outcome.log,
        f"not run: {refused}" if refused else verdict_of(outcome.judged),
        "" if refused else size(outcome),
        "" if refused else minutes(outcome.cpu_seconds),
    ]


def section(outcome: Outcome, figure: str = "") -> Iterator[str]:
    """Paragraphs about an experiment: ours beside the published, and what else was found."""
    experiment = outcome.experiment
    log = f", on {outcome.log}" if outcome.log else ""
    yield f"## {experiment.name}: {experiment.paper}, {experiment.place}{log}"
    yield f"{experiment.about}. {size(outcome)}"
    if outcome.refused:
        yield f"Not run: {outcome.refused}"
        return
    for is_published, columns in ((True, COLUMNS), (False, INDEPENDENT)):
        found = [row(one) for one in outcome.judged if one.claim.is_published == is_published]
        if found and not is_published:
            yield NOT_PUBLISHED
        if found:
            yield table(columns, found)
    if figure:
        yield figure
    if facts := facts_of(outcome):
        yield "\n".join(f"- {fact}" for fact in facts)


def write_markdown(outcomes: Sequence[Outcome], out: Path) -> Path:
    """The page about all of them, with small figures in a folder of its name."""
    cpu, wall = (sum(getattr(o, name) for o in outcomes) for name in ("cpu_seconds", "seconds"))
    blocks = [
        "# The papers, reproduced",
        "Written by `python -m reproduction all`; do not edit.",
        INTRODUCTION,
        f"All together took {minutes(cpu)} minutes of processor time, {minutes(cpu / 2)} on two "
        f"free cores; by the clock, beside whatever else ran, {minutes(wall)} minutes. logeval "
        f"{__version__}, Python {platform.python_version()}.",
        summary(outcomes),
    ]
    for outcome in outcomes:
        figure = ""
        if not outcome.refused:
            file = out.with_suffix("") / f"{outcome.name.replace('@', '-on-')}.png"
            with styled("paper"):
                save_figure(figure_of(outcome), file, dpi=60)
            figure = f"![{outcome.experiment.place} again]({file.parent.name}/{file.name})"
        blocks += section(outcome, figure)
    out.parent.mkdir(parents=True, exist_ok=True)
    files.write_text(out, "\n\n".join(blocks) + "\n")
    return out


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [columns, ["---"] * len(columns), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in cells
    )


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


def _range(values: Sequence[float]) -> str:
    low, high = rounded(min(values)), rounded(max(values))
    return low if low == high else f"{low} to {high}"


def size(outcome: Outcome) -> str:
    """Steps and runs; less than the paper's is said."""
    if not outcome.runs:
        return ""
    full = outcome.at_full_horizon and outcome.n_runs >= outcome.experiment.runs
    said = f"{outcome.horizon:,} steps, {outcome.n_runs} runs"
    return said if full else f"{said}; less than the paper's"


def minutes(seconds: float) -> str:
    """Minutes with one place below ten."""
    return f"{seconds / 60:.1f}" if seconds < 600 else f"{seconds / 60:.0f}"
