"""policies, evaluate."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from logeval.commands.app import app
from logeval.commands.command import command
from logeval.commands.show import (
    Csv,
    Details,
    Json,
    Latex,
    latex_table,
    print_answer,
    print_for_programs,
    print_frame,
    print_notes,
    print_table,
)
from logeval.errors import unknown_names
from logeval.evaluation.evaluate import Evaluate, track_names

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
    details: Details = False,
    as_json: Json = False,
    as_csv: Csv = False,
    as_latex: Latex = False,
) -> None:
    """Who loses least, the table, and figures beside it."""
    from logeval.reports.answers.runs import HEADS, rows_of
    from logeval.reports.figures.canvas import figure_beside
    from logeval.reports.figures.regret import figure_of, regret_figure

    answer = runs.verdict()
    more = {"facts": answer.records(), "notes": runs.notes}
    if print_for_programs(runs.summary(), as_json, as_csv, **more):
        return
    if as_latex:
        print(summary_latex(runs))
        return
    several = len(runs.panels()) > 1
    rows = [row[not several : -1] for row in rows_of(runs)]
    heads = ["simulator", *HEADS] if several else HEADS
    simulator = "" if several else f"{runs.title(runs.panels()[0])}: "
    title = f"{simulator}regret after {runs.horizon:,} searches; a letter in common: not told apart"
    print_answer(answer, title, heads, rows, details, 1 + several)
    tracks = runs.to_pandas()["track"].nunique()
    if details and tracks > 1:
        print_relative(runs)
    print_notes(runs.notes if details else ())
    if asked.out is None:
        print("nothing is kept; --out FOLDER keeps the runs for plot and report", file=sys.stderr)
        return
    out = Path(asked.out)
    figures: dict[str, Any] = {"regret.pdf": regret_figure(runs)}
    if tracks > 1:
        figures["relative.pdf"] = figure_of(runs, "relative")
    for name, figure in figures.items():
        figure_beside(figure, out, name)
    print(f"{out}: runs-*.parquet, {', '.join(figures)}", file=sys.stderr)
    print(f"more: logeval report {shlex.quote(str(out))} --out report", file=sys.stderr)


def summary_latex(runs: Runs) -> str:
    """The table for a paper, one per simulator: bold is the best that is told from all others."""
    from logeval.reports.answers.runs import HEADS, rows_of

    rows, texts = rows_of(runs), []
    for title in dict.fromkeys(row.simulator for row in rows):
        mine = [row for row in rows if row.simulator == title]
        bold = [(i, j) for i, row in enumerate(mine) if row.alone for j in (0, 1)]
        about = f"{title}, regret after {runs.horizon:,} searches"
        texts.append(latex_table(about, HEADS, [row[1:-1] for row in mine], bold))
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
