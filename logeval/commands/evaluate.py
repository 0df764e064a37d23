"""``logeval policies``, ``logeval evaluate`` and the figures of its runs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from logeval.commands.app import app, plot_app
from logeval.commands.command import Csv, Json, Latex, command, naming_options
from logeval.commands.latex import latex_table
from logeval.commands.show import (
    print_for_programs,
    print_table,
    table_text,
    wrapped,
)
from logeval.errors import unknown_names
from logeval.evaluation.evaluate import Evaluate, track_names
from logeval.running.words import p_cell, with_interval

if TYPE_CHECKING:
    import pandas as pd

    from logeval.evaluation.results import Runs

Folder = Annotated[Path, typer.Argument(help="Folder that evaluate wrote.")]
Figure = Annotated[Path, typer.Option(help="Figure to write: .pdf, .png or .svg.")]
LogX = Annotated[bool, typer.Option("--log-x", help="Logarithmic searches.")]
Style = Annotated[str, typer.Option(help="Look of the figure: paper or slides.")]


@app.command()
def policies(
    track: Annotated[
        str | None,
        typer.Option(help="Only those of this track.", autocompletion=track_names),
    ] = None,
    as_json: Json = False,
) -> None:
    """The policies: options (the default first), what each must know and reads, cost, paper.

    Example: logeval policies --track ranking
    """
    from logeval.policies.catalogue import catalogue
    from logeval.tracks.registry import TRACKS

    if track is not None and track not in TRACKS:
        raise unknown_names("track", [track], TRACKS)
    rows = catalogue(track)
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    columns = ["policy", "track", "options", "must know", "paper"]  # the rest is in --json
    print_table("policies", columns, [[row[c] for c in columns] for row in rows])


@command(Evaluate, figures=["regret.pdf", "variance.pdf", "relative.pdf"])
def show(
    runs: Runs,
    asked: Evaluate,
    *,
    as_json: Json = False,
    as_csv: Csv = False,
    as_latex: Latex = False,
) -> None:
    """Regret, the verdict, and figures beside the table."""
    from logeval.reports.figures.canvas import figure_beside
    from logeval.reports.figures.regret import regret_figure
    from logeval.reports.figures.robustness import plot_variance
    from logeval.reports.figures.tracks import figure_of
    from logeval.reports.verdict import verdict

    if asked.pilot:
        show_pilot(runs, as_json)
        return
    judged = verdict(runs)
    if print_for_programs(runs.summary(), as_json, as_csv, verdict=judged.text(), notes=runs.notes):
        return
    if as_latex:
        print(summary_latex(runs))
        return
    print(summary_text(runs))
    if asked.draws or runs.table()["simulator"].nunique() > 1:
        print(robustness_text(runs))
    tracks = runs.table()["track"].nunique() > 1
    if tracks:
        print(relative_text(runs))
    print(f"\n{judged.text()}\n")
    if asked.out is None:
        print(
            "nothing is kept; --out FOLDER keeps the runs for plot, report, compare",
            file=sys.stderr,
        )
        return
    out = Path(asked.out)
    figure = figure_beside(regret_figure(runs), out, "regret.pdf")
    print(f"table {out / 'runs-*.parquet'}, figure {figure}")
    if asked.draws:
        figure = figure_beside(plot_variance(runs).figure, out, "variance.pdf")
        print(f"figure of the variance {figure}")
    if tracks:
        figure = figure_beside(figure_of(runs, "relative"), out, "relative.pdf")
        print(f"figure across tracks {figure}")
    print(f"more: logeval report {out} --out report", file=sys.stderr)


def show_pilot(runs: Runs, as_json: bool) -> None:
    """The runs that a comparison needs, and their time."""
    from logeval.reports.pilot import pilot_words

    if as_json:
        needs = {
            str(panel): {
                name: None if isinstance(x, float) and not math.isfinite(x) else x
                for name, x in one._asdict().items()
            }
            for panel, one in runs.needs().items()
        }
        print(json.dumps({"needs": needs, "seconds": runs.seconds, "words": pilot_words(runs)}))
        return
    print(summary_text(runs))
    for line in pilot_words(runs):
        print(wrapped(line))


@plot_app.command("regret")
def plot_regret(
    runs: Folder,
    out: Figure = Path("regret.pdf"),
    log_x: LogX = False,
    per_query: Annotated[bool, typer.Option("--per-query", help="One panel per query.")] = False,
    simulator: Annotated[
        str | None, typer.Option(help="Only this simulator, as DCM; default: all.")
    ] = None,
    track: Annotated[
        str | None, typer.Option(help="Only this track.", autocompletion=track_names)
    ] = None,
    style: Style = "paper",
) -> None:
    """Cumulative regret over time, with 95% bands.

    Example: logeval plot regret runs/dcm --out regret.pdf
    """
    from logeval.reports.figures.regret import regret_figure

    def draw(found: Runs) -> Any:
        return regret_figure(
            found, simulator=simulator, track=track, log_x=log_x, per_query=per_query
        )

    _draw(draw, runs, out, style)


def _plot_over_time(name: str, about: str, example: str) -> None:
    """Add ``logeval plot NAME``."""

    def plot(
        runs: Folder,
        out: Figure = Path(f"{name}.pdf"),
        log_x: LogX = False,
        style: Style = "paper",
    ) -> None:
        from logeval.reports.figures.tracks import figure_of

        _draw(lambda found: figure_of(found, name, log_x=log_x), runs, out, style)

    plot_app.command(name, help=f"{about}\n\nExample: logeval plot {name} {example}")(plot)


def _draw(draw: Callable[[Runs], Any], folder: Path, out: Path, style: str) -> None:
    from logeval.evaluation.results import Runs
    from logeval.reports.figures.canvas import check_kind, save_figure
    from logeval.reports.figures.style import styled

    check_kind(out)
    with styled(style), naming_options(None, simulator="--simulator", track="--track"):
        print(save_figure(draw(Runs.load(folder)), out))


_plot_over_time(
    "relative",
    "Regret as a share of the optimal reward over time, all tracks on one axis.",
    "runs/pbm --out relative.pdf",
)
_plot_over_time(
    "remaining",
    "Rows and columns that the elimination policies have left over time.",
    "runs/pbm --log-x --out remaining.pdf",
)
_plot_over_time(
    "cosine",
    "Cosine distance of the estimated theta to the true one over time.",
    "runs/contextual --out cosine.pdf",
)


class SummaryTable(NamedTuple):
    """The policies of one simulator and track, best first."""

    title: str
    rows: Sequence[tuple[str, ...]]
    alone: bool  # whether the first that competes is told apart from all others


COLUMNS = ["policy", "regret", "to the best", "p", "of best"]


def summary_tables(runs: Runs) -> list[SummaryTable]:
    """The summary as people read it, one table per simulator and track."""
    from logeval.reports.details import of_panel

    summary: pd.DataFrame = runs.summary()
    found = []
    for panel in runs.panels():
        part = of_panel(summary, panel)
        title = f"{runs.title(panel)}, regret after {runs.horizon:,} searches [95% intervals]"
        rows = [
            (
                row["policy"],
                with_interval(row["regret"], row["low"], row["high"]),
                with_interval(row["difference"], row["difference_low"], row["difference_high"], "+")
                if abs(row["difference"]) > 1e-9
                else "",
                p_cell(row["p"]),
                f"{row['share_of_optimum']:.2%}",
            )
            for _, row in part.iterrows()
        ]
        alone = part["in_best_set"].sum() == 1 and part["p"].notna().any()
        found.append(SummaryTable(title, rows, bool(alone)))
    return found


def summary_text(runs: Runs) -> str:
    """The summary as tables for people."""
    tables = summary_tables(runs)
    return "\n".join(f"{one.title}\n{table_text(COLUMNS, one.rows)}\n" for one in tables)


def summary_latex(runs: Runs) -> str:
    """The summary for a paper: the best is bold where it is told apart from all others."""
    from logeval.evaluation.statistics.summary import is_oracle

    texts = []
    for title, rows, alone in summary_tables(runs):
        best = next((i for i, row in enumerate(rows) if not is_oracle(row[0])), 0)
        texts.append(latex_table(title, COLUMNS, rows, [(best, 0), (best, 1)] if alone else []))
    return "\n\n".join(texts)


def robustness_text(runs: Runs) -> str:
    """Who is best on how many simulators, and where the variance of regret comes from."""
    from logeval.evaluation.statistics.robustness import best_text

    lines = ["\nWould another click model, or other parameters, change the verdict?"]
    for track, part in runs.best().groupby("track"):
        lines += [wrapped(f"{track}: {line}") for line in best_text(part)]
    shares = runs.variance().pivot(index=["track", "policy"], columns="source", values="share")
    found = shares.map(lambda x: "" if x != x else f"{x:.0%}").reset_index()
    shown = table_text(list(found.columns), found.to_numpy().tolist())
    return "\n".join([*lines, "\nShares in the variance of mean regret", shown])


def relative_text(runs: Runs) -> str:
    """All tracks on one axis, as a table for people."""
    from logeval.tracks.registry import TRACKS

    found = runs.relative()
    several = found["simulator"].nunique() > 1
    columns = ["policy", "track", "reward", "relative", "95% interval"]
    rows: list[tuple[str, ...]] = [
        (
            row["policy"],
            row["track"],
            row["reward"],
            f"{row['relative_regret']:.2%}",
            f"[{row['low']:.2%}, {row['high']:.2%}]",
        )
        for _, row in found.iterrows()
    ]
    if several:
        columns = ["simulator", *columns]
        rows = [(name, *row) for name, row in zip(found["simulator"], rows, strict=True)]
    meanings = {r.name: r.meaning for track in TRACKS.values() for r in track.rewards}
    legend = [f"  {name}: of {meanings[name]}" for name in sorted(set(found["reward"]))]
    return "\n".join(
        [
            "\nAll tracks on one axis: regret / optimal reward",
            *legend,
            table_text(columns, rows),
        ]
    )
