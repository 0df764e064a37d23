"""run, report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("report", short_help="Runs -> a page to send to a colleague.")(report)
    app.command("run", short_help="All stages of a recipe.")(run)


def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders that evaluate wrote.")],
    out: Annotated[Path, typer.Option(help="Folder for the page, figures and tables.")],
    models: Annotated[
        Path | None, typer.Option(help="Their models; default: those that were evaluated.")
    ] = None,
    log: Annotated[
        Path | None, typer.Option(help="Their log; default: the one that was fitted.")
    ] = None,
    replay: Annotated[
        Path | None, typer.Option(help="Folder of replay estimate, to show its estimates too.")
    ] = None,
    title: Annotated[str, typer.Option(help="Title of the page.")] = "logeval",
    style: Annotated[str, typer.Option(help="Look of the figures: paper or slides.")] = "paper",
    quiet: Quiet = False,
) -> None:
    """Write a self-contained page about runs, with every figure and table beside it.

    Example: logeval report runs/dcm --out report
    """
    from logeval.reports.report import report as write

    path = write(
        runs, out, models=models, log=log, replay=replay, title=title, style=style, quiet=quiet
    )
    print(path)


def run(
    recipe: Annotated[Path, typer.Argument(help="A recipe, as pipelines/demo.toml.")],
    set: Annotated[
        list[str] | None,
        typer.Option("--set", help="Override a value, as evaluate.horizon=1000; repeatable."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and why.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Run all stages of a recipe; skip what is up to date, continue after an interruption.

    Example: logeval run pipelines/demo.toml --set evaluate.horizon=1000
    """
    from logeval.commands.show import print_table
    from logeval.pipeline import read_recipe
    from logeval.pipeline import run as run_recipe

    found = read_recipe(recipe, set or [])
    steps = run_recipe(found, dry_run=dry_run, quiet=quiet)
    if dry_run:
        rows = [(s.stage, "would run" if s.reason else "up to date", s.reason) for s in steps]
        print_table(f"{recipe}, output in {found.out}", ["stage", "", "because"], rows)
        return
    for step in steps:
        print(f"{step.stage:<12}{step.out}")
    print(f"\nLook at {steps[-1].out / 'index.html'}")
