"""Figures of predictive checks: the log's clicks beside the bands of a model's users."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from logeval.clicks.quality.checks.features import CHECKS
from logeval.errors import unknown_names
from logeval.reports.figures.canvas import new_axes, save_figure
from logeval.reports.figures.style import CELLS, COLOURS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from logeval.clicks.quality.checks.predictive import Checks
    from logeval.clicks.quality.ranker_change import RankerChange

LABELS = {
    "clicks-per-serp": ("clicks on a SERP", "share of SERPs"),
    "ctr-by-rank": ("rank", "CTR"),
    "first-click": ("rank of the first click", "share of SERPs with a click"),
    "last-click": ("rank of the last click", "share of SERPs with a click"),
    "distance": ("ranks to the next click", "share of such pairs"),
    "after-click": ("rank", "CTR after a click higher up"),
    "top-items": ("items, most shown first", "CTR"),
    "swaps": ("upper of two neighbouring ranks", "share of its clicks, items seen at both"),
    "calibration": ("predicted click probability", "CTR"),
}
GRID = 4  # columns


def plot_check(checks: Checks, check: str, models: Iterable[str] | None = None) -> Figure:
    """One panel per model: the log (dots) and 95% of the model's simulations (band).

    Components outside of what chance and the parameters' uncertainty allow, corrected for all that
    was looked at, have a red ring.
    """
    from matplotlib.figure import Figure

    if check not in CHECKS:
        raise unknown_names("check", [check], CHECKS)
    curves = checks.curves
    rows = curves[curves["query"].isna() & (curves["check"] == check)]
    names = list(models or dict.fromkeys(curves["model"]))
    columns = min(len(names), GRID)
    lines = -(-len(names) // columns)
    figure = Figure(figsize=(2.3 * columns + 0.4, 1.9 * lines + 0.3), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
    for i, ax in enumerate(axes.flat):
        if i >= len(names):
            ax.set_visible(False)
            continue
        _panel(ax, rows[rows["model"] == names[i]], check)
        ax.set_title(names[i], fontsize="medium")
    axes[0, 0].set_ylim(bottom=0)  # of all panels; before they are drawn it would fix their top
    figure.supxlabel(LABELS[check][0], fontsize="medium")
    figure.supylabel(LABELS[check][1], fontsize="medium")
    return figure


def _panel(ax: Axes, rows: pd.DataFrame, check: str) -> None:
    if check == "after-click":
        _after(ax, rows)
        return
    x = rows["expected" if check == "calibration" else "x"].to_numpy(dtype=np.float64)
    order = np.argsort(x, kind="stable")
    x = x[order]
    log, mean, low, high = (
        rows[c].to_numpy(dtype=np.float64)[order] for c in ("observed", "expected", "low", "high")
    )
    bars = np.maximum([mean - low, high - mean], 0.0)
    ax.errorbar(x, mean, bars, fmt="none", ecolor=COLOURS[0], elinewidth=4, alpha=0.45)
    ax.plot(x, log, "o", color="black", ms=3)
    if check == "calibration":
        ax.plot([0, high.max(initial=0)], [0, high.max(initial=0)], color="grey", lw=0.6)
    wrong = rows["faulted"].to_numpy(dtype=np.bool_)[order]
    ax.plot(x[wrong], log[wrong], "o", mfc="none", mec=COLOURS[1], ms=8, mew=1.2)


def _after(ax: Axes, rows: pd.DataFrame) -> None:
    """One line per rank of the earlier click: the log dotted, the model drawn."""
    earlier = rows["component"].str.split(" after ").str[1].astype(int)
    for i, (_, part) in enumerate(rows.groupby(earlier)):
        if i >= 4:
            break  # the first ranks; the table has all
        colour = COLOURS[i % len(COLOURS)]
        part = part.sort_values("x")
        x = part["x"].to_numpy(dtype=np.float64)
        low, high = (part[c].to_numpy(dtype=np.float64) for c in ("low", "high"))
        log = part["observed"].to_numpy(dtype=np.float64)
        ax.fill_between(x, low, high, color=colour, alpha=0.25, lw=0)
        ax.plot(x, log, "o", ls=":", color=colour, ms=2.5, lw=0.8)
        wrong = part["faulted"].to_numpy(dtype=np.bool_)
        ax.plot(x[wrong], log[wrong], "o", mfc="none", mec="black", ms=6, mew=0.8)


def verdicts_of(checks: Checks) -> dict[str, dict[str, tuple[float, bool]]]:
    """The error of every check over all queries that was judged, and whether it is faulted."""
    rows = checks.table[checks.table["query"].isna()]
    found: dict[str, dict[str, tuple[float, bool]]] = {name: {} for name in rows["model"].unique()}
    for _, row in rows[rows["components"] > 0].iterrows():
        found[row["model"]][row["check"]] = (float(row["error"]), bool(row["faulted"]))
    return found


def plot_verdicts(
    errors: Mapping[str, Mapping[str, tuple[float, bool]]], ax: Axes | None = None
) -> Axes:
    """Models by checks over all queries: how far off, and whether that is faulted.

    A cell has the error (total variation distance, mean error of CTR, or calibration error) and is
    coloured where the check faults the model; one that was not judged has none.
    """
    from matplotlib.colors import ListedColormap

    ax = ax or new_axes(1.4 + 0.62 * len(CHECKS), 0.6 + 0.22 * len(errors))
    faulted = np.full((len(errors), len(CHECKS)), 0.5)
    for i, mine in enumerate(errors.values()):
        for j, check in enumerate(CHECKS):
            error, wrong = mine.get(check, (None, None))
            text = "-" if error is None else f"{error:.3f}"
            ax.text(j, i, text, ha="center", va="center")
            faulted[i, j] = 0.5 if wrong is None else float(wrong)
    edges = (np.arange(n + 1) - 0.5 for n in faulted.shape[::-1])
    ax.pcolormesh(*edges, faulted, cmap=ListedColormap(list(CELLS.values())), vmin=0, vmax=1)
    ax.invert_yaxis()
    ax.set_xticks(range(len(CHECKS)), [n.replace("-", "\n", 1) for n in CHECKS])
    ax.set_yticks(range(len(errors)), list(errors))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def plot_ranker_change(change: RankerChange, ax: Axes | None = None) -> Axes:
    """Log-likelihood of each model on the same SERPs, fitted with and without such lists."""
    table = change.table
    ax = ax or new_axes(4.6, 1.0 + 0.28 * len(table))
    y = np.arange(len(table))
    before, after = (
        table[f"log_likelihood_{part}"].to_numpy(dtype=np.float64) for part in ("random", "change")
    )
    ax.hlines(y, after, before, color="grey", lw=1)
    ax.plot(before, y, "o", mfc="white", mec=COLOURS[0], ms=5, label="random split")
    ax.plot(after, y, "o", color=COLOURS[1], ms=5, label="change of ranker")
    ax.set_yticks(y, list(table["model"]))
    ax.invert_yaxis()
    ax.set_xlabel("log-likelihood of the same test SERPs")
    ax.legend(frameon=False, fontsize="small")
    return ax


def save_check_figures(checks: Checks, folder: Path) -> list[Path]:
    """One figure per check, one of all verdicts, and one of the change of ranker."""
    figures: dict[str, Figure] = {}
    if checks.verdicts:
        figures["verdicts"] = plot_verdicts(verdicts_of(checks)).figure  # type: ignore[assignment]
    for check in CHECKS:
        if (checks.curves["check"] == check).any():
            figures[check] = plot_check(checks, check)
    if checks.change is not None:
        figures["ranker-change"] = plot_ranker_change(checks.change).figure  # type: ignore[assignment]
    paths = []
    for name, figure in figures.items():
        paths.append(folder / f"{name}.png")
        save_figure(figure, paths[-1])
    return paths
