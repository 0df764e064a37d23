"""Writes a report, section by section."""

from __future__ import annotations

import gc
import os
import platform
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from logeval import __version__
from logeval.reports.figures.canvas import styled
from logeval.reports.page import Content, Page, content_of
from logeval.reports.sections import SECTIONS
from logeval.running.progress import Progress
from logeval.storage import tables

if TYPE_CHECKING:
    from logeval.reports.report import Report

NAMED = 4  # simulators in the subtitle


def write_report(asked: Report, manifest: tables.Manifest) -> None:
    """Write the page, with every figure and table beside it."""
    content = content_of(asked)
    with (
        _little_garbage(),
        tables.staged(asked.out) as folder,
        styled(asked.style),
        Progress("report", len(SECTIONS), "sections", asked.quiet) as progress,
    ):
        page = Page(folder)
        for section in SECTIONS:
            section(page, content)
            progress.advance(1)
        page.write(asked.title, _subtitle(content), _footer(asked.folders, asked.out))
        tables.write_manifest(folder, manifest)


@contextmanager
def _little_garbage() -> Iterator[None]:
    """Figures make much garbage; to look for it among all that was imported takes time."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _subtitle(content: Content) -> str:
    """What was decided or compared on what, in a line."""
    found = content.decision
    if found is not None:
        period = "" if found.days is None else f", {found.days:,.3g} days"
        return f"{found.queries:,} queries, {found.searches:,.0f} searches{period}"
    tables_ = [one.to_pandas() for one in content.runs]
    policies = {policy for table in tables_ for policy in table["policy"]}
    simulators = sorted({simulator for table in tables_ for simulator in table["simulator"]})
    queries = {query for table in tables_ for query in table["query"]}
    many = f"{len(queries)} queries, " if len(queries) > 1 else ""
    on = ", ".join(simulators) if len(simulators) <= NAMED else f"{len(simulators)} simulators"
    return (
        f"{len(policies)} policies on {on}; {many}"
        f"{max(one.horizon for one in content.runs):,} searches of each"
    )


def _footer(folders: Sequence[Path], out: Path | str) -> str:
    """Date, version and command; SOURCE_DATE_EPOCH sets the date, to make the same page again."""
    now = float(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    date = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M UTC")
    here = Path(sys.argv[0])
    if here.name == "logeval" or here.match("logeval/cli.py"):
        command = shlex.join(["logeval", *sys.argv[1:]])
    else:  # from Python: the command that does the same
        given = map(str, folders) if folders else ["RUNS"]  # these were in memory
        command = shlex.join(["logeval", "report", *given, "--out", str(out)])
    return f"{date}, logeval {__version__}, Python {platform.python_version()}. Made by: {command}"
