"""Reward per search over time: each policy beside today's ranker and the best list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from logeval.reports.figures.canvas import new_panels
from logeval.reports.figures.regret import BANDS
from logeval.reports.figures.style import SEARCHES, look
from logeval.running.words import UNITS, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from logeval.evaluation.results import Runs
    from logeval.evaluation.statistics.ranker import RewardOverTime
    from logeval.tracks.keys import Panel

LEVELS = {"the best list": ("#808080", ":"), "today's ranker": ("#000000", "--")}
ROOM = 0.16  # of the height of the axes: two lines of text
BEYOND = 0.3  # of the range of the curves, which bands may leave by


def reward_figure(runs: Runs, panels: Sequence[Panel]) -> Figure:
    """A panel for each simulator and track, and one legend for all."""
    size = (7.4, 2.5) if len(panels) == 1 else (4.4, 2.45)
    figure, axes = new_panels(len(panels), *size, columns=2)
    handles: dict[str, Any] = {}
    for ax, panel in zip(axes, panels, strict=True):
        plot_reward(runs, panel, ax)
        handles |= dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    names = [name for name in handles if name not in LEVELS]  # these have their names beside them
    figure.legend(
        [handles[name] for name in names], names, loc="outside upper center", frameon=False,
        ncols=min(len(names), 3),
    )  # fmt: skip
    return figure


def plot_reward(runs: Runs, panel: Panel, ax: Axes) -> None:
    """The policies that lose least, at most ``BANDS``, with their bands, and the two levels."""
    found = runs.reward_over_time(panel)
    mine = drawn_policies(runs, panel)
    curves = {policy: found.curves[policy] for policy in mine if policy in found.curves}
    for policy, curve in curves.items():
        style = look(policy)
        t, ends = _spread(curve), curve[["reward", "low", "high"]].to_numpy()
        reward, low, high = np.vstack([ends[:1], ends, ends[-1:]]).T  # to both ends of the axis
        ax.plot(t, reward, label=policy, markevery=0.15, ms=4, **style)
        ax.fill_between(t, low, high, color=style["color"], alpha=0.18, lw=0)
    levels = {"the best list": found.best, "today's ranker": found.ranker}
    levels = {name: level for name, level in levels.items() if level == level}
    for name, level in levels.items():
        colour, line = LEVELS[name]
        ax.plot(t, np.full(len(t), level), line, color=colour, label=name, lw=1.4, zorder=3)
    unit = UNITS[runs.units()[panel]]
    ax.set(
        title=runs.title(panel), xlabel=SEARCHES, ylabel=f"{unit} per search", xlim=(0, t[-1]),
        ylim=_range(found, list(curves)),
    )  # fmt: skip
    ax.spines[["top", "right"]].set_visible(False)
    _at_the_right(ax, levels)


def drawn_policies(runs: Runs, panel: Panel) -> list[str]:
    """The policies that lose least; the Oracle is the best list."""
    summary = runs.summary()
    mine = summary[(summary["simulator"] == panel.simulator) & (summary["track"] == panel.track)]
    names = [str(policy) for policy in mine["policy"] if policy != "Oracle"]
    return names[:BANDS] or [str(policy) for policy in mine["policy"]]


def _spread(curve: Any) -> np.ndarray:
    """Where the means of the pieces of a curve stand: in their middle."""
    start, t = curve["start"].to_numpy(), curve["t"].to_numpy()
    return np.concatenate([[0.0], np.round((start + t) / 2), t[-1:]])


def _range(found: RewardOverTime, policies: Sequence[str]) -> tuple[float, float]:
    """From the lowest to the highest curve or level; bands may leave it a little."""
    curves = [found.curves[policy] for policy in policies]
    levels = [level for level in (found.ranker, found.best) if level == level]
    low = min([float(curve["reward"].min()) for curve in curves] + levels)
    high = max([float(curve["reward"].max()) for curve in curves] + levels)
    span = max(high - low, 0.01 * abs(high), 1e-6)
    bands = [(float(curve["low"].min()), float(curve["high"].max())) for curve in curves]
    bands = [band for band in bands if not np.isnan(band).any()]  # where there are intervals
    lowest = max(min([low, *(b for b, _ in bands)]), low - BEYOND * span)
    highest = min(max([high, *(b for _, b in bands)]), high + BEYOND * span)
    return max(lowest - 0.05 * span, min(0.0, low)), highest + 0.05 * span


def _at_the_right(ax: Axes, levels: dict[str, float]) -> None:
    """Names and values of the levels at their ends, apart from each other."""
    bottom, top = ax.get_ylim()
    places = {name: (level - bottom) / (top - bottom) for name, level in levels.items()}
    if len(places) == 2:
        best, ranker = places.values()
        short = max(ROOM - (best - ranker), 0.0) / 2
        places = dict(zip(places, (best + short, ranker - short), strict=True))
    for name, y in places.items():
        text = f"{name.removeprefix('the ')}\n{number(levels[name])}"
        ax.text(
            1.015, y, text, transform=ax.transAxes, va="center", color=LEVELS[name][0],
            fontsize="small",
        )  # fmt: skip
