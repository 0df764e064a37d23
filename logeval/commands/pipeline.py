"""run, report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from logeval.commands.app import app
from logeval.commands.command import Quiet, command
from logeval.reports.report import Report


@command(Report, short_help="Runs -> a page to send to a colleague.")
def show_page(page: Path, asked: Report) -> None:
    """Where the page is."""
    print(page)


@app.command(short_help="All stages of a recipe.")
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
