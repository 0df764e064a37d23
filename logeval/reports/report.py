"""The report: what was run, on what, and what came out, as one page to send to a colleague."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

from logeval import __version__, tables
from logeval.clicks.collection import FittedModels, read_models
from logeval.errors import LogevalError
from logeval.evaluation.results import Runs
from logeval.log.log import Log, load
from logeval.progress import Progress
from logeval.reports import sections
from logeval.reports.page import Page
from logeval.reports.sensitivity_section import the_simulators
from logeval.reports.style import styled


def report(
    runs: Runs | Path | str | Sequence[Runs | Path | str],
    out: Path | str,
    *,
    models: Path | str | None = None,
    log: Path | str | None = None,
    recipe: Path | str | None = None,
    policies: Sequence[str] | None = None,
    n_runs: int | None = None,
    title: str = "logeval",
    style: str = "paper",
    quiet: bool = False,
) -> Path:
    """Write ``out``/index.html about the runs of one or more folders; returns its path.

    ``models`` and ``log`` are the folders that the runs were made from; by default those that
    their manifests name, as far as they are still there. ``policies`` and ``n_runs`` choose among
    the runs that are there. Every figure is beside the page as PDF
    and PNG, every table as CSV.
    """
    wanted = wanted_manifest(
        runs,
        models=models,
        log=log,
        recipe=recipe,
        policies=policies,
        n_runs=n_runs,
        title=title,
        style=style,
    )
    folders = _folders(runs)
    found = [Runs.load(folder).only(policies, n_runs) for folder in folders]
    used_models = _models(models, folders[0])
    used_log = _log(log, used_models)
    with (
        tables.staged(out) as folder,
        styled(style),
        Progress("report", total=3 + len(found), unit="parts", quiet=quiet) as progress,
    ):
        page = Page(folder)
        sections.what_was_run(page, found, used_log, Path(recipe) if recipe else None)
        progress.advance(1)
        if used_log:
            sections.the_log(page, used_log)
        progress.advance(1)
        if used_models:
            sections.the_models(page, used_models)
        progress.advance(1)
        for i, one in enumerate(found):
            suffix = "" if len(found) == 1 else f"-{i + 1}"
            sections.the_runs(page, one, suffix)
            the_simulators(page, one, suffix)
            progress.advance(1)
        subtitle = f"logeval {__version__}, Python {platform.python_version()}"
        page.write(title, subtitle)
        tables.write_manifest(folder, wanted)
    return Path(out) / "index.html"


def wanted_manifest(
    runs: Runs | Path | str | Sequence[Runs | Path | str],
    *,
    models: Path | str | None,
    log: Path | str | None,
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
        for name, folder in (("models", models), ("log", log))
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


def _models(given: Path | str | None, runs: Path) -> FittedModels | None:
    if given is not None:
        return read_models(given)
    named = tables.read_manifest(runs).get("models_folder")
    return read_models(named) if named and (Path(named) / tables.MANIFEST).exists() else None


def _log(given: Path | str | None, models: FittedModels | None) -> Log | None:
    if given is not None:
        return load(given)
    named = models.manifest.get("log_folder") if models else None
    return load(named) if named and (Path(named) / tables.MANIFEST).exists() else None
