"""Figures across tracks, and of single ones: relative regret, elimination, cosine distance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logeval.errors import LogevalError, unknown_names
from logeval.evaluation.statistics.relative import relative_curves
from logeval.reports.figures.canvas import legend_below, log_scale, new_axes, new_panels
from logeval.reports.figures.regret import draw_curves
from logeval.tracks.registry import TRACKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from logeval.evaluation.results import Runs

LINES = {reward.name: reward.line for track in TRACKS.values() for reward in track.rewards}
CURVES = 12  # that can be told apart


def plot_relative(
    runs: Runs, simulator: str | None = None, *, ax: Axes | None = None, log_x: bool = False
) -> Axes:
    """Regret as a share of the optimal reward over time, all tracks on one axis.

    The line and the label say what is counted: one of the rewards of the track. Of many curves,
    those that earn the same are drawn: the pair at the most examined position.
    """
    known = sorted({panel.simulator for panel in runs.panels()})
    if simulator is None and len(known) > 1:
        raise LogevalError(f"name the simulator: {', '.join(known)}")
    if simulator is not None and simulator not in known:
        raise unknown_names("simulator", [simulator], known)
    simulator = simulator or known[0]
    rows = runs.table()
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


def plot_remaining(
    runs: Runs, simulator: str, *, ax: Axes | None = None, log_x: bool = False
) -> Axes:
    """Rows (solid) and columns (dotted) that are not eliminated over time, means."""
    ax = ax if ax is not None else new_axes(5.4, 3.2)
    for column, line in (("rows", "-"), ("columns", ":")):
        left = {f"{p}: {column}": curve for p, curve in runs.remaining(simulator).items()}
        draw_curves(ax, left, f"{column}_left", log_x=log_x, lines=dict.fromkeys(left, line))
    log_scale(ax.yaxis)
    ax.yaxis.set_minor_formatter("{x:g}")
    ax.set(ylabel="not eliminated", title=simulator)
    ax.autoscale(axis="y")
    legend_below(ax)
    return ax


def plot_cosine(runs: Runs, simulator: str, *, ax: Axes | None = None, log_x: bool = False) -> Axes:
    """Cosine distance of the estimated theta to the true one over time, means."""
    ax = ax if ax is not None else new_axes(5, 3.6)
    rows = runs.table()
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
    "remaining": (plot_remaining, "rows_left", "no policy eliminates in these runs"),
    "cosine": (
        plot_cosine,
        "cosine_distance",
        "no policy of these runs estimates a theta that is known",
    ),
}


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
    rows = runs.table()
    return sorted(set(rows["simulator"][rows[column].notna()]))
