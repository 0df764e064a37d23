"""policies, evaluate."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from logeval.commands.app import app
from logeval.commands.command import command
from logeval.commands.show import (
    Csv,
    Json,
    Latex,
    latex_table,
    print_for_programs,
    print_frame,
    print_table,
)
from logeval.errors import unknown_names
from logeval.evaluation.evaluate import Evaluate, track_names
from logeval.running.words import p_cell, with_interval

if TYPE_CHECKING:
    from logeval.evaluation.results import Runs


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
    from logeval.policies.registry import catalogue
    from logeval.tracks.registry import TRACKS

    if track is not None and track not in TRACKS:
        raise unknown_names("track", [track], TRACKS)
    rows = catalogue(track)
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    columns = ["policy", "track", "options", "must know", "paper"]  # the rest is in --json
    print_table("policies", columns, [[row[c] for c in columns] for row in rows])


@command(Evaluate, figures=["regret.pdf", "relative.pdf"])
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
    from logeval.reports.figures.regret import figure_of, regret_figure
    from logeval.reports.verdict import verdict

    judged = verdict(runs)
    if print_for_programs(runs.summary(), as_json, as_csv, verdict=judged.text(), notes=runs.notes):
        return
    if as_latex:
        print(summary_latex(runs))
        return
    print_summary(runs)
    table = runs.to_pandas()
    if table["track"].nunique() > 1:
        print_relative(runs)
    print(f"{judged.text()}\n")
    if asked.out is None:
        print("nothing is kept; --out FOLDER keeps the runs for plot and report", file=sys.stderr)
        return
    out = Path(asked.out)
    figures: dict[str, Any] = {"regret.pdf": regret_figure(runs)}
    if table["track"].nunique() > 1:
        figures["relative.pdf"] = figure_of(runs, "relative")
    print(f"table {out / 'runs-*.parquet'}")
    for name, figure in figures.items():
        print(f"figure {figure_beside(figure, out, name)}")
    print(f"more: logeval report {shlex.quote(str(out))} --out report", file=sys.stderr)


COLUMNS = ["policy", "regret", "to the best", "p", "of best"]


def summary_tables(runs: Runs) -> Iterator[tuple[str, list[tuple[str, ...]], bool]]:
    """By simulator and track: the title, a row per policy, best first, and whether it is alone.

    That is whether the first that competes is told apart from all others.
    """
    from logeval.reports.headline import of_panel

    for panel in runs.panels():
        part = of_panel(runs.summary(), panel)
        title = f"{runs.title(panel)}, regret after {runs.horizon:,} searches [95% intervals]"
        rows: list[tuple[str, ...]] = []
        for row in part.to_dict("records"):
            ends = (row["difference"], row["difference_low"], row["difference_high"])
            behind = with_interval(*ends, "+") if abs(row["difference"]) > 1e-9 else ""
            regret = with_interval(row["regret"], row["low"], row["high"])
            share = f"{row['share_of_optimum']:.2%}"
            rows.append((row["policy"], regret, behind, p_cell(row["p"]), share))
        yield title, rows, bool(part["in_best_set"].sum() == 1 and part["p"].notna().any())


def print_summary(runs: Runs) -> None:
    """The summary for people."""
    for title, rows, _ in summary_tables(runs):
        print_table(title, COLUMNS, rows)


def summary_latex(runs: Runs) -> str:
    """The summary for a paper: the best is bold where it is told apart from all others."""
    from logeval.evaluation.statistics.summary import is_oracle

    texts = []
    for title, rows, alone in summary_tables(runs):
        best = next((i for i, row in enumerate(rows) if not is_oracle(row[0])), 0)
        texts.append(latex_table(title, COLUMNS, rows, [(best, 0), (best, 1)] if alone else []))
    return "\n\n".join(texts)


def print_relative(runs: Runs) -> None:
    """All tracks on one axis: regret as a share of each reward's optimum."""
    from logeval.tracks.registry import TRACKS

    found = runs.relative()
    meanings = {r.name: r.meaning for track in TRACKS.values() for r in track.rewards}
    print("All tracks on one axis: regret / optimal reward")
    for name in sorted(set(found["reward"])):
        print(f"  {name}: of {meanings[name]}")
    columns = ["simulator", "policy", "track", "reward", "relative_regret", "low", "high"]
    shown = found[columns if found["simulator"].nunique() > 1 else columns[1:]]
    print_frame("", shown.rename(columns={"relative_regret": "relative\nregret"}))
