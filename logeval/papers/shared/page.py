"""One page on all experiments that were run, in the style of the report; the same in markdown."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from logeval import __version__
from logeval.papers.shared import words
from logeval.papers.shared.outcome import Outcome
from logeval.papers.shared.verdicts import table
from logeval.reports.figures.canvas import save_figure
from logeval.reports.figures.style import styled
from logeval.reports.page import Page
from logeval.storage import files, tables

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


def costs(outcomes: Sequence[Outcome]) -> str:
    """What all of it has cost."""
    cpu, wall = (sum(getattr(o, name) for o in outcomes) for name in ("cpu_seconds", "seconds"))
    return (
        f"All together took {words.minutes(cpu)} minutes of processor time, "
        f"{words.minutes(cpu / 2)} on two free cores; by the clock, beside whatever else ran, "
        f"{words.minutes(wall)} minutes. logeval {__version__}, Python {platform.python_version()}."
    )


def write_page(outcomes: Sequence[Outcome], out: Path) -> Path:
    """Write ``out``/index.html, with the figures and tables beside it; returns its path."""
    with tables.staged(out) as folder, styled("paper"):
        page = Page(folder)
        page.section("What was reproduced")
        page.text(INTRODUCTION)
        page.text(costs(outcomes))
        rows = [words.summary_row(outcome) for outcome in outcomes]
        page.table("summary", pd.DataFrame(rows, columns=words.SUMMARY), "All experiments")
        for outcome in outcomes:
            _section(page, outcome)
        page.write("The papers, reproduced", f"{len(outcomes)} experiments", costs(outcomes))
        names = [outcome.name for outcome in outcomes]
        tables.write_manifest(folder, tables.manifest_of("reproduce", {"experiments": names}, []))
    return out / "index.html"


def _section(page: Page, outcome: Outcome) -> None:
    experiment, name = outcome.experiment, outcome.file_name
    page.section(outcome.title)
    page.text(f"{experiment.about}. {words.size(outcome)}")
    if outcome.refused:
        page.notes([f"not run: {outcome.refused}"])
        return
    for is_published, columns, rows in words.halves(outcome.judged):
        shown = list(zip(*rows, strict=True))
        page.table(
            name if is_published else f"{name}-independent",
            table([j for j in outcome.judged if j.claim.is_published == is_published]),
            "Ours beside the published" if is_published else NOT_PUBLISHED,
            shown={c: [(v, None) for v in shown[i]] for i, c in enumerate(columns)},
        )
    if experiment.figure is not None:
        page.figure(name, experiment.figure(outcome), f"{experiment.place} again.")
    page.notes(outcome.facts)


def write_markdown(outcomes: Sequence[Outcome], out: Path) -> Path:
    """The same as a file of markdown, with small figures in a folder of its name."""
    blocks = [
        "# The papers, reproduced",
        "Written by `logeval reproduce all` (or `page`); do not edit.",
        INTRODUCTION,
        costs(outcomes),
        _table(words.SUMMARY, [words.summary_row(outcome) for outcome in outcomes]),
    ]
    for outcome in outcomes:
        experiment = outcome.experiment
        blocks += [f"## {outcome.title}", f"{experiment.about}. {words.size(outcome)}"]
        if outcome.refused:
            blocks.append(f"Not run: {outcome.refused}")
            continue
        for is_published, columns, rows in words.halves(outcome.judged):
            blocks += [] if is_published else [NOT_PUBLISHED]
            blocks.append(_table(columns, rows))
        if experiment.figure is not None:
            file = out.with_suffix("") / f"{outcome.file_name}.png"
            with styled("paper"):
                save_figure(experiment.figure(outcome), file, dpi=60)
            blocks.append(f"![{experiment.place} again]({file.parent.name}/{file.name})")
        blocks += ["\n".join(f"- {fact}" for fact in outcome.facts)] if outcome.facts else []
    out.parent.mkdir(parents=True, exist_ok=True)
    files.write_text(out, "\n\n".join(blocks) + "\n")
    return out


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [columns, ["---"] * len(columns), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in cells
    )
