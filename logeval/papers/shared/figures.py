"""Figures in the form of the papers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from logeval.papers.shared.experiment import Cell
from logeval.papers.shared.outcome import Outcome
from logeval.reports.figures.canvas import legend_below, new_axes, new_panels
from logeval.reports.figures.regret import plot_regret
from logeval.reports.figures.tracks import plot_cosine

Bound = Callable[[int], float]


def curves(
    parts: Sequence[str] = (),
    *,
    only: Sequence[str] = (),
    log_x: bool = False,
    bounds: Mapping[str, Mapping[str, Bound]] | None = None,
    titles: Mapping[str, str] | None = None,
) -> Callable[[Outcome], Any]:
    """Regret over time: a panel for every simulator of the parts, or for ``only`` some.

    ``bounds`` are functions of n by simulator and name; with them the axes are logarithmic.
    """

    def draw(outcome: Outcome) -> Any:
        chosen = [part for part in outcome.runs if not parts or part in parts]
        panels = [(part, panel) for part in chosen for panel in outcome.runs[part].panels()]
        panels = [p for p in panels if not only or p[1].simulator in only]
        figure, axes = new_panels(len(panels))
        for ax, (part, panel) in zip(axes, panels, strict=True):
            runs = outcome.runs[part]
            plot_regret(runs, ax=ax, simulator=panel.simulator, track=panel.track, log_x=log_x)
            name = next(p.title for p in outcome.experiment.parts if p.name == part)
            ax.set_title((titles or {}).get(panel.simulator, name or panel.simulator))
            mine = (bounds or {}).get(panel.simulator, {})
            if mine:
                draw_bounds(ax, outcome.horizon, mine)
        return figure

    return draw


def draw_bounds(ax: Any, horizon: int, bounds: Mapping[str, Bound]) -> None:
    """Bounds as dotted lines, on logarithmic axes."""
    n = (
        np.unique(np.geomspace(20, horizon, 60).astype(int))
        if horizon > 20
        else np.array([horizon])
    )
    for style, (name, bound) in zip((":", "-.", "--"), bounds.items(), strict=False):
        ax.plot(n, [bound(int(k)) for k in n], style, color="grey", label=name)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(20, horizon)
    ax.set_ylim(bottom=1)
    ax.set_ylim(top=ax.dataLim.ymax * 1.2)
    legend_below(ax)


def cosine(outcome: Outcome) -> Any:
    """Distance of the estimated theta to the true one."""
    (runs,) = outcome.runs.values()
    (panel,) = runs.panels()
    ax = new_axes(5, 3.6)
    plot_cosine(runs, panel.simulator, ax=ax)
    return ax.figure


def lines(
    series: Mapping[str, Sequence[tuple[float, Cell]]], x_label: str
) -> Callable[[Outcome], Any]:
    """Regret at the horizon against a parameter, a line for each of the series."""

    def draw(outcome: Outcome) -> Any:
        ax = new_axes(5, 3.6)
        for marker, (name, points) in zip("os^Dv<>P", series.items(), strict=False):
            x = [value for value, _ in points]
            by_run = [outcome.regret(cell) for _, cell in points]
            error = [r.std(ddof=1) / np.sqrt(len(r)) if len(r) > 1 else 0.0 for r in by_run]
            y = [r.mean() for r in by_run]
            ax.errorbar(x, y, error, marker=marker, ms=4, label=name)
        ax.set(xlabel=x_label, ylabel=f"regret after {outcome.horizon:,} steps")
        ax.set_ylim(bottom=0)
        ax.spines[["top", "right"]].set_visible(False)
        legend_below(ax)
        return ax.figure

    return draw
