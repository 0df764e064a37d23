"""check-models: how far a fitted model can be trusted as a simulator."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from logeval.clicks.quality.checks import Checks


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check-models")(check_models)


def check_models(
    models: Annotated[Path, typer.Argument(help="Folder of fitted models.")],
    log: Annotated[Path, typer.Argument(help="Folder of an ingested log.")],
    simulations: Annotated[
        int, typer.Option(help="Simulations of each held-out SERP, at least 80.")
    ] = 200,
    serps: Annotated[
        int, typer.Option(help="Held-out SERPs to check on, drawn if there are more.", min=1)
    ] = 20_000,
    ranker_change: Annotated[
        bool,
        typer.Option(
            "--ranker-change/--no-ranker-change",
            help="Fit the models again, to lists unlike those they are scored on.",
        ),
    ] = True,
    truth: Annotated[
        Path | None,
        typer.Option(help="True models of a generated log (LOG.truth), to compare with."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the tables.")] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Folder for the figures, one per check.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Root of all random numbers.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="JSON for programs.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Simulate clicks on held-out lists and compare them with the log's.

    Example: logeval check-models data/yandex/models/dcm data/yandex --figures checks
    """
    from logeval.clicks.quality.checks import check_models as run

    checks = run(
        models,
        log,
        simulations=simulations,
        serps=serps,
        ranker_change=ranker_change,
        truth=truth,
        out=out,
        seed=seed,
        quiet=quiet,
    )
    if as_json:
        print(json.dumps(checks.rows()))
    else:
        _show(checks)
    if figures is not None:
        from logeval.reports.check_figures import save_check_figures

        change = None if checks.change is None else checks.change.table
        paths = save_check_figures(checks.table, checks.curves, figures, change)
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
        truth = checks.truth.astype(object).where(checks.truth.notna(), None)
        print_frame("Beside the truth", truth)
    for note in checks.notes:
        print(f"Note: {note}")


def _cell(row: Any) -> str:
    if not row["components"]:
        return "-"
    return f"{row['error']:.3f}{'*' if row['faulted'] else ''}"
