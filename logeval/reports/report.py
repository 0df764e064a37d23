"""The report: what was run, on what, and what came out, as one page to send to a colleague."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from logeval import __version__
from logeval.errors import LogevalError
from logeval.evaluation.results import Runs
from logeval.reports.content import content_of
from logeval.reports.page import Page
from logeval.reports.sections import SECTIONS
from logeval.reports.style import styled
from logeval.running.progress import Progress
from logeval.storage import tables


def report(
    runs: Runs | Path | str | Sequence[Runs | Path | str],
    out: Path | str,
    *,
    models: Path | str | None = None,
    log: Path | str | None = None,
    replay: Path | str | None = None,
    recipe: Path | str | None = None,
    policies: Sequence[str] | None = None,
    n_runs: int | None = None,
    title: str = "logeval",
    style: str = "paper",
    quiet: bool = False,
) -> Path:
    """Write ``out``/index.html about the runs of one or more folders; returns its path.

    ``models`` and ``log`` are the folders that the runs were made from; by default those that
    their manifests name, as far as they are still there. ``replay`` is a folder of ``replay
    estimate``, for a section on what the log itself says. ``policies`` and ``n_runs`` choose among
    the runs that are there. The page is complete in itself: figures and tables can be saved from
    it, and are beside it as SVG (most also as PDF) and CSV.
    """
    wanted = wanted_manifest(
        runs,
        models=models,
        log=log,
        replay=replay,
        recipe=recipe,
        policies=policies,
        n_runs=n_runs,
        title=title,
        style=style,
    )
    folders = _folders(runs)
    found = [Runs.load(folder).only(policies, n_runs) for folder in folders]
    content = content_of(folders, found, models, log, recipe, replay)
    with (
        tables.staged(out) as folder,
        styled(style),
        Progress("report", total=len(SECTIONS), unit="sections", quiet=quiet) as progress,
    ):
        page = Page(folder)
        for section in SECTIONS:
            section(page, content)
            progress.advance(1)
        page.write(title, _subtitle(found), _footer(folders, out))
        tables.write_manifest(folder, wanted)
    return Path(out) / "index.html"


def wanted_manifest(
    runs: Runs | Path | str | Sequence[Runs | Path | str],
    *,
    models: Path | str | None,
    log: Path | str | None,
    replay: Path | str | None,
    recipe: Path | str | None,
    policies: Sequence[str] | None,
    n_runs: int | None,
    title: str,
    style: str,
) -> tables.Manifest:
    """The manifest of the report that ``report`` with these arguments writes."""
    folders = _folders(runs)
    arguments = {
        "runs": [str(folder) for folder in folders],
        "policies": None if policies is None else list(policies),
        "n_runs": n_runs,
        "title": title,
        "style": style,
    }
    inputs = [{"runs": tables.identity(folder)} for folder in folders]
    inputs += [
        {name: tables.identity(folder)}
        for name, folder in (("models", models), ("log", log), ("replay", replay))
        if folder is not None
    ]
    if recipe is not None:
        inputs.append({"recipe": tables.checksum(Path(recipe))})
    return tables.manifest_of("report", arguments, inputs)


def _folders(runs: Runs | Path | str | Sequence[Runs | Path | str]) -> list[Path]:
    several = [runs] if isinstance(runs, Runs | str | Path) else runs
    folders = [r.saved_in() if isinstance(r, Runs) else Path(r) for r in several]
    if not folders:
        raise LogevalError("there is nothing to report; name the folder of some runs")
    return folders


def _subtitle(runs: Sequence[Runs]) -> str:
    """What was compared on what, in a line."""
    tables_ = [one.table() for one in runs]
    policies = {policy for table in tables_ for policy in table["policy"]}
    simulators = sorted({simulator for table in tables_ for simulator in table["simulator"]})
    queries = {query for table in tables_ for query in table["query"]}
    many = f"{len(queries)} queries, " if len(queries) > 1 else ""
    return (
        f"{len(policies)} policies on {', '.join(simulators)}; {many}"
        f"{max(one.horizon for one in runs):,} steps"
    )


def _footer(folders: Sequence[Path], out: Path | str) -> str:
    """Date, version and command; SOURCE_DATE_EPOCH sets the date, to make the same page again."""
    now = float(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    date = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M UTC")
    here = Path(sys.argv[0])
    if here.name == "logeval" or here.match("logeval/cli.py"):
        command = shlex.join(["logeval", *sys.argv[1:]])
    else:  # from Python: the command that does the same
        command = shlex.join(["logeval", "report", *map(str, folders), "--out", str(out)])
    return f"{date}, logeval {__version__}, Python {platform.python_version()}. Made by: {command}"
