"""Figures of cumulative regret: lines with 95% bands, linear or log x, per query if wanted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from logeval.errors import LogevalError
from logeval.reports.figures import check_kind, legend_below, new_axes, new_panels, save_figure
from logeval.reports.style import look
from logeval.reports.words import query_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from logeval.evaluation.results import Runs


def plot_regret(
    runs: Runs,
    *,
    ax: Axes | None = None,
    simulator: str | None = None,
    track: str | None = None,
    log_x: bool = False,
    per_query: bool = False,
    bounds: Mapping[str, np.ndarray | float] | None = None,
) -> Axes | np.ndarray:
    """Cumulative regret of each policy over time, with bands of 95% intervals.

    ``per_query`` draws small multiples, one per query, and returns their array of axes.
    ``bounds`` adds dotted lines, by name: a value per checkpoint, or a slope in log t (a lower
    bound of ``logeval.tracks.ranking_theory``).
    """
    panels = [
        panel
        for panel in runs.panels()
        if simulator in (panel.simulator, None) and track in (panel.track, None)
    ]
    if len(panels) != 1:
        known = ", ".join(runs.title(panel) for panel in panels or runs.panels())
        raise LogevalError(f"choose one simulator and track to plot: {known}")
    (panel,) = panels
    name = runs.title(panel)
    if not per_query:
        ax = ax if ax is not None else new_axes(5, 3.6)
        curves = runs.curves(panel.simulator, track=panel.track)
        draw_curves(ax, curves, log_x)
        _draw_bounds(ax, curves, bounds or {})
        ax.set(xlabel="step t", ylabel="cumulative regret", title=name)
        legend_below(ax)
        return ax
    names = query_names(list(runs.table()["query"].unique()))
    queries = list(names)
    n_columns = min(5, math.ceil(math.sqrt(len(queries))))
    n_rows = math.ceil(len(queries) / n_columns)
    size = (2.4 * n_columns, 2.0 * n_rows + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    axes: np.ndarray = figure.subplots(n_rows, n_columns, sharex=True, squeeze=False)
    for one, query in zip(axes.flat, queries, strict=False):
        draw_curves(one, runs.curves(panel.simulator, query, panel.track), log_x)
        one.set_title(names[query], fontsize="small")
    for one in axes.flat[len(queries) :]:
        one.set_visible(False)
    figure.supxlabel("step t")
    figure.supylabel(f"cumulative regret ({name})")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(4, len(labels)))
    return axes


def save_regret(
    runs: Runs, out: Path | str, *, log_x: bool = False, per_query: bool = False
) -> Path:
    """Write the figure to a file; several simulators get a panel each."""
    panels = runs.panels()
    if per_query and len(panels) > 1:
        raise LogevalError("small multiples need runs of one simulator")
    check_kind(out)
    if per_query:
        small: Any = plot_regret(runs, log_x=log_x, per_query=True)
        return save_figure(small.flat[0].figure, out)
    figure, axes = new_panels(len(panels))
    for ax, panel in zip(axes, panels, strict=True):
        plot_regret(runs, ax=ax, simulator=panel.simulator, track=panel.track, log_x=log_x)
    return save_figure(figure, out)


def draw_curves(ax: Axes, curves: Mapping[str, pd.DataFrame], log_x: bool = False) -> None:
    """Lines with bands, by policy."""
    for policy, curve in curves.items():
        style = look(policy)
        t = curve["t"].to_numpy()
        ax.plot(t, curve["regret"], label=policy, markevery=max(1, len(t) // 8), ms=4, **style)
        ax.fill_between(t, curve["low"], curve["high"], color=style["color"], alpha=0.2, lw=0)
    if log_x:
        ax.set_xscale("log")
    top = max(curve["regret"].max() for curve in curves.values())
    ax.set_ylim(0, min(ax.get_ylim()[1], 2.0 * top) if top > 0.0 else None)  # bands may be wide
    ax.spines[["top", "right"]].set_visible(False)


def _draw_bounds(
    ax: Axes, curves: Mapping[str, pd.DataFrame], bounds: Mapping[str, np.ndarray | float]
) -> None:
    t = next(iter(curves.values()))["t"].to_numpy()
    for name, value in bounds.items():
        values = value * np.log(t) if np.ndim(value) == 0 else value
        ax.plot(t, values, ":", color="grey", label=name)
