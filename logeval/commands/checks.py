"""check-models: how far a fitted model can be trusted as a simulator."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from logeval.clicks.quality.check import CheckModels
from logeval.commands.command import Json, command

if TYPE_CHECKING:
    from logeval.clicks.quality.checks.predictive import Checks


@command(CheckModels)
def show(
    checks: Checks,
    asked: CheckModels,
    *,
    figures: Annotated[
        Path | None, typer.Option(help="Folder for the figures, one per check.")
    ] = None,
    as_json: Json = False,
) -> None:
    """The checks, and their figures in a folder."""
    if as_json:
        print(json.dumps(checks.rows()))
    else:
        _show(checks)
    if figures is not None:
        from logeval.reports.figures.checks import save_check_figures

        paths = save_check_figures(checks, figures)
        print(f"{figures}: {', '.join(path.name for path in paths)}", file=sys.stderr)


def _show(checks: Checks) -> None:
    from logeval.commands.show import print_frame, print_table

    rows = checks.table
    overall = rows[rows["query"].isna()]
    names = list(dict.fromkeys(rows["check"]))
    print_table(
        "How far off, over all queries; * where chance does not explain it, - where not judged",
        ["model", *names],
        [
            [model, *(_cell(part.set_index("check").loc[name]) for name in names)]
            for model, part in overall.groupby("model", sort=False)
        ],
    )
    wrong = overall[overall["faulted"]]
    columns = ["model", "check", "worst", "observed", "expected", "low", "high", "corrected"]
    if len(wrong):
        print_frame("What is faulted, at its worst", wrong[columns])
    for verdict in checks.verdicts.values():
        print(verdict.line)
    if checks.change is not None:
        print()
        table = checks.change.table
        shown = [c for c in table.columns if not c.endswith(("_low", "_high"))]
        print_frame("The same SERPs, fitted with such lists and without", table[shown])
        print(checks.change.line)
    if checks.truth is not None:
        print()
        print_frame("Beside the truth", checks.truth)
    for note in checks.notes:
        print(f"Note: {note}")


def _cell(row: Any) -> str:
    if not row["components"]:
        return "-"
    return f"{row['error']:.3f}{'*' if row['faulted'] else ''}"
