"""Figures of cumulative regret: over time, and query by query.

Figures across tracks, and of single ones: relative regret, cosine distance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib import rcParams

from logeval.errors import LogevalError, unknown_names
from logeval.evaluation.statistics.summary import is_oracle, relative_curves
from logeval.reports.figures.canvas import (
    SEARCHES,
    legend_below,
    log_scale,
    look,
    new_axes,
    new_panels,
)
from logeval.running.names import parse_call
from logeval.running.words import UNITS, joined
from logeval.tracks.registry import TRACKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from logeval.evaluation.results import Runs
    from logeval.tracks.keys import Panel


BANDS = 5  # curves whose bands can be told apart


def plot_regret(
    runs: Runs,
    *,
    ax: Axes | None = None,
    simulator: str | None = None,
    track: str | None = None,
    log_x: bool = False,
    per_query: bool = False,
    bounds: Mapping[str, float] | None = None,
) -> Axes | np.ndarray:
    """Cumulative regret of each policy over time, with bands of 95% intervals for up to ``BANDS``.

    ``per_query`` draws small multiples, one per query, and returns their array of axes.
    ``bounds`` adds dotted lines, by name: slopes in log t (as a lower bound of
    ``logeval.tracks.lists``).
    """
    panel = _one(runs, panels_of(runs, simulator, track))
    if per_query:
        small: Any = query_figure(runs, panel, queries_of(runs, panel), log_x).axes
        found = np.empty(len(small), dtype=object)
        found[:] = small
        return found.reshape(-1, _columns(len(queries_of(runs, panel))))
    ax = ax if ax is not None else new_axes(5, 3.6)
    curves = runs.curves(panel.simulator, track=panel.track)
    draw_curves(ax, curves, log_x=log_x)
    for name, slope in (bounds or {}).items():
        t = next(iter(curves.values()))["t"].to_numpy()
        ax.plot(t, slope * np.log(t), ":", color="grey", label=name)
    ax.set(ylabel=f"cumulative regret, {UNITS[runs.units()[panel]]}", title=runs.title(panel))
    legend_below(ax)
    return ax


def panels_of(runs: Runs, simulator: str | None = None, track: str | None = None) -> list[Panel]:
    """The panels of a simulator and track, or of all; an error where there is none."""
    panels = runs.panels()
    for kind, asked in (("simulator", simulator), ("track", track)):
        known = sorted({str(getattr(panel, kind)) for panel in panels})
        if asked is not None and str(asked).lower() not in [name.lower() for name in known]:
            raise unknown_names(f"{kind} of these runs", [str(asked)], known)
        panels = [p for p in panels if asked is None or getattr(p, kind).lower() == asked.lower()]
    return panels


def _one(runs: Runs, panels: list[Panel]) -> Panel:
    """The panel that is meant; an error that says how to choose where there are several."""
    if len(panels) == 1:
        return panels[0]
    simulators = list(dict.fromkeys(panel.simulator for panel in panels))
    more = f"simulator={simulators[0]}" if len(simulators) > 1 else f"track={panels[0].track}"
    known = joined([runs.title(panel) for panel in panels])
    raise LogevalError(f"these runs are of {known}; choose one to plot, as {more}")


def query_figure(
    runs: Runs, panel: Panel, titles: Mapping[str, str], log_x: bool = False
) -> Figure:
    """Small multiples of a simulator and track: one for each query, with its title."""
    n_columns = _columns(len(titles))
    # all cells are alike, and to lay out sixty takes seconds
    figure, axes = new_panels(len(titles), 2.4, 2.0, n_columns, layout=None)
    width, height = figure.get_size_inches()
    left, right, low, high, top = np.array([0.62, 0.1, 0.42, 0.3, 0.3]) * rcParams["font.size"] / 8
    figure.subplots_adjust(
        left / width, low / height, 1 - right / width, 1 - (high + top) / height,
        (left + right) / (2.4 - left - right), (low + high) / (2.0 - low - high),
    )  # fmt: skip
    curves = runs.query_curves(panel)
    for ax, (query, title) in zip(axes, titles.items(), strict=True):
        draw_curves(ax, curves[query], log_x=log_x, bands=False)
        ax.set(title=title, ylabel="regret")
        if not log_x:
            ax.locator_params(nbins=4)
    handles = dict(zip(*axes[0].get_legend_handles_labels()[::-1], strict=True))
    figure.legend(
        handles.values(), handles, loc="upper center", ncols=min(4, len(handles)), frameon=False
    )
    return figure


def _columns(panels: int) -> int:
    return min(5, math.ceil(math.sqrt(panels)))


def queries_of(runs: Runs, panel: Panel) -> dict[str, str]:
    """The queries of a simulator and track, in numeric order, with their titles."""
    rows = runs.to_pandas()
    mine = (rows["simulator"] == panel.simulator) & (rows["track"] == panel.track)
    names = runs.names.titles(rows["query"].unique())
    present = set(rows["query"][mine])
    return {query: f"query {name}" for query, name in names.items() if query in present}


def regret_figure(
    runs: Runs,
    *,
    simulator: str | None = None,
    track: str | None = None,
    log_x: bool = False,
    per_query: bool = False,
) -> Figure:
    """The figure of some runs: a panel for every simulator and track, or for every query of one."""
    panels = panels_of(runs, simulator, track)
    if per_query:
        panel = _one(runs, panels)
        return query_figure(runs, panel, queries_of(runs, panel), log_x)
    figure, axes = new_panels(len(panels))
    for ax, panel in zip(axes, panels, strict=True):
        plot_regret(runs, ax=ax, simulator=panel.simulator, track=panel.track, log_x=log_x)
    return figure


def draw_curves(
    ax: Axes,
    curves: Mapping[str, pd.DataFrame],
    value: str = "regret",
    *,
    log_x: bool = False,
    bands: bool | None = None,
    lines: Mapping[str, str] | None = None,
) -> None:
    """Lines with bands over steps, by policy or ``policy: what is counted``.

    They are in the order in which they end, from top to bottom. With more than ``BANDS`` of them,
    the bands would cover each other. ``lines`` are linestyles by name.
    """
    bands = len(curves) <= BANDS if bands is None else bands
    ends = {name: -float(curve[value].iloc[-1]) for name, curve in curves.items()}
    for name in sorted(curves, key=lambda name: ends[name]):
        curve, style = curves[name], look(name.partition(": ")[0])
        style["linestyle"] = (lines or {}).get(name, style["linestyle"])
        t = curve["t"].to_numpy()
        ax.plot(t, curve[value], label=name, markevery=0.15, ms=4, **style)
        if bands and "high" in curve:
            ax.fill_between(t, curve["low"], curve["high"], color=style["color"], alpha=0.2, lw=0)
    compete = [curve for name, curve in curves.items() if not is_oracle(name)]
    top = max((float(curve[value].max()) for curve in compete), default=0.0)
    if top > 0.0:  # bands may be wide, and what the Oracle loses in the wrong order much
        highs = [float(c["high"].max()) for c in compete if bands and "high" in c]
        ax.set_ylim(0, 1.03 * min(max([top, *(h for h in highs if h == h)]), 2.0 * top))
    else:
        ax.set_ylim(bottom=0)
    if log_x:
        log_scale(ax.xaxis)
    ax.set_xlabel(SEARCHES)
    ax.spines[["top", "right"]].set_visible(False)


def lower_bounds(panel: Panel) -> dict[str, float]:
    """The lower bound on the regret of any consistent algorithm, as a slope in log t, if known."""
    slope_of = TRACKS[panel.track].lower_slopes.get(parse_call(panel.simulator)[0])
    slope = None if slope_of is None else slope_of(panel.simulator)
    return {} if slope is None else {"lower bound": slope}


LINES = {reward.name: reward.line for track in TRACKS.values() for reward in track.rewards}
CURVES = 12  # that can be told apart


def plot_relative(
    runs: Runs, simulator: str, *, ax: Axes | None = None, log_x: bool = False
) -> Axes:
    """Regret as a share of the optimal reward over time, all tracks on one axis.

    The line and the label say what is counted: one of the rewards of the track. Of many curves,
    those that earn the same are drawn: the pair at the most examined position.
    """
    rows = runs.to_pandas()
    found = relative_curves(rows[rows["simulator"] == simulator])
    if len(found) > CURVES:
        found = {key: curve for key, curve in found.items() if key[1] != "list"}
    curves = {f"{policy}: {reward}": curve for (policy, reward), curve in found.items()}
    lines = {f"{policy}: {reward}": LINES[reward] for policy, reward in found}
    ax = ax if ax is not None else new_axes(5.4, 4.0)
    draw_curves(ax, curves, "relative_regret", log_x=log_x, lines=lines)
    ax.set(ylabel="regret / optimal reward", title=simulator)
    legend_below(ax)
    return ax


def plot_cosine(runs: Runs, simulator: str, *, ax: Axes | None = None, log_x: bool = False) -> Axes:
    """Cosine distance of the estimated theta to the true one over time, means."""
    ax = ax if ax is not None else new_axes(5, 3.6)
    rows = runs.to_pandas()
    rows = rows[(rows["simulator"] == simulator) & rows["cosine_distance"].notna()]
    means = rows.groupby(["policy", "t"])["cosine_distance"].mean().reset_index("t")
    curves = {str(policy): curve for policy, curve in means.groupby("policy", sort=True)}
    draw_curves(ax, curves, "cosine_distance", log_x=log_x)
    ax.set(ylabel="cosine distance to theta", title=simulator)
    legend_below(ax)
    return ax


# by name: what draws a simulator, what must have been measured on it, and else
FIGURES = {
    "relative": (plot_relative, "regret", "there are no runs"),
    "cosine": (
        plot_cosine,
        "cosine_distance",
        "no policy of these runs estimates a theta that is known",
    ),
}


def plot_runs(runs: Runs, what: str = "regret", **how: Any) -> Axes | np.ndarray:
    """Regret, or one of ``FIGURES``, of one simulator."""
    if what == "regret":
        return plot_regret(runs, **how)
    if what not in FIGURES:
        raise unknown_names("figure", [what], ["regret", *FIGURES])
    plot, column, nothing = FIGURES[what]
    if not (known := simulators_with(runs, column)):
        raise LogevalError(nothing)
    simulator = how.pop("simulator", None)
    if simulator is None and len(known) > 1:
        raise LogevalError(f"name the simulator: {', '.join(known)}")
    if simulator not in (None, *known):
        raise unknown_names("simulator", [simulator], known)
    return plot(runs, simulator or known[0], **how)


def figure_of(runs: Runs, name: str, *, log_x: bool = False) -> Figure:
    """One of ``FIGURES``; a panel for each simulator."""
    plot, column, nothing = FIGURES[name]
    simulators = simulators_with(runs, column)
    if not simulators:
        raise LogevalError(nothing)
    figure, axes = new_panels(len(simulators))
    for ax, simulator in zip(axes, simulators, strict=True):
        plot(runs, simulator, ax=ax, log_x=log_x)
    return figure


def simulators_with(runs: Runs, column: str) -> list[str]:
    """The simulators where this was measured."""
    rows = runs.to_pandas()
    return sorted(set(rows["simulator"][rows[column].notna()]))
