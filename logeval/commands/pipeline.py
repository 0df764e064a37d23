"""run, report, demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from logeval.commands.app import app
from logeval.commands.command import Quiet, as_typed, command
from logeval.commands.show import print_table, wrapped
from logeval.errors import LogevalError
from logeval.log.ingest import pairs_of
from logeval.reports.report import Report
from logeval.running import console
from logeval.stage import Stage

if TYPE_CHECKING:
    from logeval.pipeline import Recipe, Step


@command(Report, short_help="Runs -> a page to send to a colleague.")
def show_page(page: Path, asked: Report) -> None:
    """Where the page is."""
    print(page)


@app.command(short_help="All stages of a recipe.")
def run(
    recipe: Annotated[Path, typer.Argument(help="A recipe, as pipelines/yandex-dcm.toml.")],
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

    Example: logeval run pipelines/yandex-dcm.toml --set evaluate.horizon=1000
    """
    from logeval.pipeline import read_recipe
    from logeval.pipeline import run as run_recipe

    found = read_recipe(recipe, set or [])
    steps = run_recipe(found, dry_run=dry_run, quiet=quiet)
    if dry_run:
        rows = [(s.stage, "would run" if s.reason else "up to date", s.reason) for s in steps]
        print_table(f"{recipe}, output in {found.out}", ["stage", "", "because"], rows)
        return
    _print_answer(found, steps)


@app.command(short_help="All stages on a small synthetic log, or on yours: the first thing to try.")
def demo(
    log: Annotated[
        list[Path] | None,
        typer.Option("--log", help="Your log in place of a synthetic one; repeatable."),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("--map", help="What a column of your log is: ours=yours; repeatable."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the output; without, demo or demo-LOG.")
    ] = None,
    set: Annotated[
        list[str] | None,
        typer.Option("--set", help="Override a value, as evaluate.horizon=1000; repeatable."),
    ] = None,
    open: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open", help="Open the report; without, where there is a display."
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Show everything on a small synthetic log: click models, bandits, verdict and report.

    With --log the same on your own log: its ten most frequent queries.

    Example: logeval demo --log train.gz
    """
    from logeval.pipeline import demo_recipe
    from logeval.pipeline import run as run_recipe

    try:
        found = demo_recipe(log or [], out, set or [], pairs_of(columns or []))
        steps = run_recipe(found, quiet=quiet)
    except LogevalError as error:
        raise LogevalError(as_typed(str(error), {"columns": "--map"})) from error
    page = _print_answer(found, steps)
    if console.has_display() if open is None else open:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


def _print_answer(recipe: Recipe, steps: list[Step]) -> Path:
    """What was made, what it says, and the page with more."""
    from logeval.pipeline import records

    for step in steps:
        print(f"{step.stage:<12}{step.out}")
    print(f"\n{_answer(records(recipe), {step.stage: step.out for step in steps})}")
    page = steps[-1].out / "index.html"
    print(f"\nmore: {page}")
    return page


def _answer(stages: dict[str, Stage[Any]], out: dict[str, Path]) -> str:
    """The verdict on the runs that the recipe asks for; there may be others in their folder.

    And what the log itself says, if the recipe asks for that.
    """
    from logeval.evaluation.results import Runs
    from logeval.replay.estimates import Estimates
    from logeval.reports.verdict import verdict

    page = stages["report"]
    assert isinstance(page, Report)
    text = verdict(Runs.load(out["evaluate"]).only(page.policies, page.n_runs)).text()
    if "replay" not in out:
        return text
    said = Estimates.read(out["replay"]).verdict().answer
    return f"{text}\n\n{wrapped(f'Without a simulator, from the log itself: {said}')}"
