"""Figures across tracks, and of single ones: relative regret, elimination, cosine distance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from logeval.errors import LogevalError
from logeval.evaluation.statistics.relative import relative_curves
from logeval.reports.figures import check_kind, legend_below, new_axes, new_panels, save_figure
from logeval.reports.style import look
from logeval.tracks.registry import TRACKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from logeval.evaluation.results import Runs

LINES = {reward.name: reward.line for track in TRACKS.values() for reward in track.rewards}


def plot_relative(
    runs: Runs, simulator: str, *, ax: Axes | None = None, log_x: bool = False
) -> Axes:
    """Regret as a share of the optimal reward over time, all tracks, with 95% bands.

    The line and the label say what is counted: one of the rewards of the track.
    """
    ax = ax if ax is not None else new_axes(5.4, 4.0)
    rows = runs.table()
    rows = rows[rows["simulator"] == simulator]
    for (policy, reward), curve in relative_curves(rows).items():
        style = look(policy)
        style["linestyle"] = LINES[reward]
        t = curve["t"].to_numpy()
        ax.plot(
            t, curve["relative_regret"], label=f"{policy}: {reward}", ms=4,
            markevery=max(1, len(t) // 8), **style,
        )  # fmt: skip
        ax.fill_between(t, curve["low"], curve["high"], color=style["color"], alpha=0.2, lw=0)
    ax.set(xlabel="step t", ylabel="regret / optimal reward", title=simulator)
    ax.set_ylim(bottom=0)
    return _finish(ax, log_x)


def plot_remaining(
    runs: Runs, simulator: str, *, ax: Axes | None = None, log_x: bool = False
) -> Axes:
    """Rows (solid) and columns (dotted) that are not eliminated over time, means."""
    ax = ax if ax is not None else new_axes(5.4, 3.2)
    for policy, curve in runs.remaining(simulator).items():
        style = look(policy)
        for column, line in (("rows_left", "-"), ("columns_left", ":")):
            style["linestyle"] = line
            name = column.removesuffix("_left")
            ax.plot(
                curve["t"], curve[column], label=f"{policy}: {name}", ms=4,
                markevery=max(1, len(curve) // 8), **style,
            )  # fmt: skip
    ax.set(xlabel="step t", ylabel="not eliminated", title=simulator, yscale="log")
    for axis_ticks in (ax.yaxis.set_major_formatter, ax.yaxis.set_minor_formatter):
        axis_ticks("{x:g}")
    return _finish(ax, log_x)


def plot_cosine(runs: Runs, simulator: str, *, ax: Axes, log_x: bool = False) -> Axes:
    """Cosine distance of the estimated theta to the true one over time, means."""
    rows = runs.table()
    rows = rows[(rows["simulator"] == simulator) & rows["cosine_distance"].notna()]
    for policy, mine in rows.groupby("policy", sort=True):
        curve = mine.groupby("t")["cosine_distance"].mean()
        ax.plot(
            curve.index, curve, label=str(policy), ms=4, markevery=max(1, len(curve) // 8),
            **look(str(policy)),
        )  # fmt: skip
    ax.set(xlabel="step t", ylabel="cosine distance to theta", title=simulator)
    ax.set_ylim(bottom=0)
    return _finish(ax, log_x)


def save_cosine(runs: Runs, out: Path | str, *, log_x: bool = False) -> Path:
    """Write the figure of the cosine distance; a panel for each simulator."""
    rows = runs.table()
    simulators = sorted(set(rows["simulator"][rows["cosine_distance"].notna()]))
    if not simulators:
        raise LogevalError("no policy of these runs estimates a theta that is known")
    check_kind(out)
    figure, axes = new_panels(len(simulators))
    for ax, simulator in zip(axes, simulators, strict=True):
        plot_cosine(runs, simulator, ax=ax, log_x=log_x)
    return save_figure(figure, out)


def save_relative(runs: Runs, out: Path | str, *, log_x: bool = False) -> Path:
    """Write the figure of relative regret; a panel for each simulator."""
    simulators = sorted(set(runs.table()["simulator"]))
    check_kind(out)
    figure, axes = new_panels(len(simulators))
    for ax, simulator in zip(axes, simulators, strict=True):
        plot_relative(runs, simulator, ax=ax, log_x=log_x)
    return save_figure(figure, out)


def save_remaining(runs: Runs, out: Path | str, *, log_x: bool = False) -> Path:
    """Write the figure of what is not eliminated; a panel for each simulator."""
    rows = runs.table()
    simulators = sorted(set(rows["simulator"][rows["rows_left"].notna()]))
    if not simulators:
        raise LogevalError("no policy eliminates in these runs")
    check_kind(out)
    figure, axes = new_panels(len(simulators))
    for ax, simulator in zip(axes, simulators, strict=True):
        plot_remaining(runs, simulator, ax=ax, log_x=log_x)
    return save_figure(figure, out)


def _finish(ax: Axes, log_x: bool) -> Axes:
    if log_x:
        ax.set_xscale("log")
    ax.spines[["top", "right"]].set_visible(False)
    legend_below(ax)
    return ax
