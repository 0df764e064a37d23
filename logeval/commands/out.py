"""``logeval export`` and ``logeval plan``: what comes after."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from logeval.commands.command import Json, command, in_options
from logeval.commands.show import print_for_programs, print_frame, wrapped
from logeval.exports.export import Export
from logeval.planning.plan import Plan
from logeval.running.console import unguarded

if TYPE_CHECKING:
    import pandas as pd

    from logeval.exports.exported import Exported
    from logeval.planning.experiment import ExperimentPlan


@command(Export)
def show_export(found: Exported, asked: Export) -> None:
    """The text itself, or where it is; what was withheld."""
    if asked.out is None:
        print(found.files[""], end="", file=unguarded(sys.stdout))
    else:
        for more in found.files:
            print(f"{asked.out}{more}")
    print(wrapped(in_options(found.words, Export)), file=sys.stderr)


@command(Plan, figures=["power.png"])
def show_plan(found: ExperimentPlan, asked: Plan, *, as_json: Json = False) -> None:
    """The answer, a row per design, and the figure of power."""
    more = {"verdict": found.verdict().text(), "facts": found.facts, "bandit": found.bandit}
    curve = found.curve.to_dict(orient="records")
    if not print_for_programs(found.table, as_json, False, **more, curve=curve):
        shown = found.table.drop(columns=["low", "high", "flattered"])
        shown.insert(3, "95% interval", _intervals(found.table))
        print_frame("What a test looks for in one search, and searches that it needs", shown, 2)
        print(in_options(found.verdict().text(), Plan))
    if asked.out is not None:
        from logeval.reports.figures.canvas import figure_beside

        figure = figure_beside(found.plot().figure, asked.out, "power.png")
        print(f"figure {figure}", file=sys.stderr)


def _intervals(rows: pd.DataFrame) -> list[str]:
    pairs = zip(rows["low"], rows["high"], strict=True)
    return ["" if low != low else f"{low:.4f} .. {high:.4f}" for low, high in pairs]
