"""plot, report, run, demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from logeval.commands.app import app
from logeval.commands.command import Quiet, command, refuse_empty
from logeval.commands.show import print_table
from logeval.errors import LogevalError, unknown_names
from logeval.evaluation.evaluate import track_names
from logeval.reports.report import Report
from logeval.running import console
from logeval.stage import Stage

if TYPE_CHECKING:
    from logeval.pipeline import Recipe, Step


@app.command(short_help="A figure of runs, or of fitted models.")
def plot(
    folder: Annotated[Path, typer.Argument(help="Folder of runs, or of fitted models.")],
    what: Annotated[
        str | None,
        typer.Option(
            help="Of runs: regret (the default), relative (all tracks on one axis), cosine (of "
            "theta to its estimate); of models: attraction "
            "(the default), examination or termination."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Figure to write: .pdf, .png or .svg; default: WHAT.pdf.")
    ] = None,
    of: Annotated[
        str | None, typer.Option("--model", "--simulator", help="Only this one, as DCM.")
    ] = None,
    track: Annotated[
        str | None, typer.Option(help="Regret: only this track.", autocompletion=track_names)
    ] = None,
    per_query: Annotated[
        bool, typer.Option("--per-query", help="Regret: one panel per query.")
    ] = False,
    log_x: Annotated[bool, typer.Option("--log-x", help="Runs: logarithmic searches.")] = False,
    queries: Annotated[
        str | None, typer.Option(help="Models: only these queries, as 9982,98435@1.")
    ] = None,
    style: Annotated[str, typer.Option(help="Look of the figure: paper or slides.")] = "paper",
) -> None:
    """Draw runs over time, or the parameters of fitted models, with 95% intervals.

    Example: logeval plot runs/dcm --what regret --out regret.pdf
    """
    from logeval.clicks.collection import FittedModels
    from logeval.evaluation.results import Runs
    from logeval.pipeline import load
    from logeval.reports.figures.canvas import check_kind, save_figure, styled
    from logeval.reports.figures.regret import FIGURES, figure_of, regret_figure

    found = load(folder)
    what = what or ("regret" if isinstance(found, Runs) else "attraction")
    out = out or Path(f"{what}.pdf")
    check_kind(out)
    with styled(style):
        if isinstance(found, FittedModels):
            if queries is not None:
                refuse_empty("--queries", [queries])
            figure: Any = found.plot(what, of, queries).figure
        elif not isinstance(found, Runs):
            raise LogevalError(f"{folder}: is a log; describe --figure draws it")
        elif what in FIGURES:
            figure = figure_of(found, what, log_x=log_x)
        elif what == "regret":
            figure = regret_figure(
                found, simulator=of, track=track, log_x=log_x, per_query=per_query
            )
        else:
            raise unknown_names("figure", [what], ["regret", *FIGURES])
        print(save_figure(figure, out))


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


@app.command(short_help="All stages on a small synthetic log: the first thing to try.")
def demo(
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the output; without, demo.")
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
    """Show everything on a small synthetic log: click models, bandits, the answer and its page.

    On a log of yours: logeval decide FILE

    Example: logeval demo
    """
    from logeval.pipeline import demo_recipe
    from logeval.pipeline import run as run_recipe

    found = demo_recipe(out, set or [])
    steps = run_recipe(found, quiet=quiet)
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
    """The decision; without one, what the runs say, and the log itself, where it was asked."""
    from logeval.decision.decision import Decision

    if "decide" in out:
        return Decision.read(out["decide"]).text()
    from logeval.evaluation.results import Runs
    from logeval.replay.estimate import Estimates

    page = stages["report"]
    assert isinstance(page, Report)
    text = Runs.load(out["evaluate"]).only(page.policies, page.n_runs).verdict().text()
    if "replay" not in out:
        return text
    said = Estimates.read(out["replay"]).verdict().text()
    return f"{text}\n\nWithout a simulator, from the log itself:\n{said}"
