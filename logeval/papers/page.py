"""One page on all experiments that were run, in the style of the report; the same in markdown."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from logeval import __version__
from logeval.papers import words
from logeval.papers.outcome import Outcome
from logeval.papers.verdicts import Judged, judged, table
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
    "most 10%. What a text says in words has ends, which are ours; it is reproduced when "
    "the 99% interval of ours (Student's, over the runs) lies between them, not reproduced when it "
    "lies outside, and otherwise it cannot be told. A claim about several cases must hold in "
    "each: the hardest is shown. The standard errors given are to the number, or to the nearer end."
)
NOT_PUBLISHED = (
    "Not published: what independent programs found. Ours agrees when it differs by at most three "
    "standard errors of both."
)


class Told(NamedTuple):
    """An outcome with its verdicts."""

    outcome: Outcome
    found: list[Judged]

    @property
    def title(self) -> str:
        """The heading of its section."""
        log = f", on {self.outcome.log}" if self.outcome.log else ""
        experiment = self.outcome.experiment
        return f"{experiment.name}: {experiment.paper}, {experiment.place}{log}"

    @property
    def facts(self) -> list[str]:
        """The joint test of many numbers, and what else was found."""
        if self.outcome.refused:
            return []
        facts = self.outcome.experiment.facts
        return words.joint_test(self.found) + (facts(self.outcome) if facts else [])


def tell(outcomes: Sequence[Outcome]) -> list[Told]:
    """With their verdicts."""
    return [Told(o, [] if o.refused else judged(o)) for o in outcomes]


def costs(told: Sequence[Told]) -> str:
    """What all of it has cost."""
    cpu = sum(one.outcome.cpu_seconds for one in told)
    wall = sum(one.outcome.seconds for one in told)
    return (
        f"All together took {words.minutes(cpu)} minutes of processor time, "
        f"{words.minutes(cpu / 2)} on two free cores; by the clock, beside whatever else ran, "
        f"{words.minutes(wall)} minutes. logeval {__version__}, Python {platform.python_version()}."
    )


def write_page(told: Sequence[Told], out: Path) -> Path:
    """Write ``out``/index.html, with the figures and tables beside it; returns its path."""
    with tables.staged(out) as folder, styled("paper"):
        page = Page(folder)
        page.section("What was reproduced")
        page.text(INTRODUCTION)
        page.text(costs(told))
        rows = [words.summary_row(*one) for one in told]
        page.table("summary", pd.DataFrame(rows, columns=words.SUMMARY), "All experiments")
        for one in told:
            _section(page, one)
        page.write("The papers, reproduced", f"{len(told)} experiments", costs(told))
        names = [one.outcome.name for one in told]
        tables.write_manifest(folder, tables.manifest_of("reproduce", {"experiments": names}, []))
    return out / "index.html"


def _section(page: Page, one: Told) -> None:
    outcome, found = one
    page.section(one.title)
    page.text(f"{outcome.experiment.about}. {words.size(outcome)}")
    if outcome.refused:
        page.notes([f"not run: {outcome.refused}"])
        return
    name = outcome.name.replace("@", "-on-")
    for is_published, columns, rows in words.halves(found):
        shown = list(zip(*rows, strict=True))
        page.table(
            name if is_published else f"{name}-independent",
            table([j for j in found if j.claim.is_published == is_published]),
            "Ours beside the published" if is_published else NOT_PUBLISHED,
            shown={c: [(v, None) for v in shown[i]] for i, c in enumerate(columns)},
        )
    if outcome.experiment.figure is not None:
        page.figure(name, outcome.experiment.figure(outcome), f"{outcome.experiment.place} again.")
    page.notes(one.facts)


def write_markdown(told: Sequence[Told], out: Path) -> Path:
    """The same as a file of markdown, with small figures in a folder of its name."""
    lines = [
        "# The papers, reproduced",
        "",
        "Written by `logeval reproduce all` (or `page`); do not edit.",
        "",
        INTRODUCTION,
        "",
        costs(told),
        "",
        *_table(words.SUMMARY, [words.summary_row(*one) for one in told]),
    ]
    for one in told:
        outcome, found = one
        lines += [
            "",
            f"## {one.title}",
            "",
            f"{outcome.experiment.about}. {words.size(outcome)}",
            "",
        ]
        if outcome.refused:
            lines.append(f"Not run: {outcome.refused}")
            continue
        for is_published, columns, rows in words.halves(found):
            lines += [] if is_published else ["", NOT_PUBLISHED, ""]
            lines += _table(columns, rows)
        if outcome.experiment.figure is not None:
            file = out.with_suffix("") / f"{outcome.name.replace('@', '-on-')}.png"
            with styled("paper"):
                save_figure(outcome.experiment.figure(outcome), file, dpi=60)
            lines += ["", f"![{outcome.experiment.place} again]({file.parent.name}/{file.name})"]
        if one.facts:
            lines += ["", *(f"- {fact}" for fact in one.facts)]
    out.parent.mkdir(parents=True, exist_ok=True)
    with files.replacing(out) as partial:
        partial.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return out


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [columns, ["---"] * len(columns), *rows]
    return ["| " + " | ".join(c.replace("|", "\\|") for c in line) + " |" for line in cells]
