"""What policies earn over the period of a decision, beside today's ranker and the best lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from logeval.decision.decision import BEST, TODAY, Decision
from logeval.reports.answer import UNITS, short_names
from logeval.reports.figures.canvas import DAYS, look, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 4  # policies that are drawn
LEVELS = {BEST: ("#808080", ":"), TODAY: ("#000000", "--")}
APART = 0.09  # of the height: a line of text


def earnings_figure(found: Decision) -> Figure:
    """Reward per day, or search where the log has no days; the choice with its interval."""
    ax = new_axes(6.2, 2.5)
    per = 1.0 if found.days is None else found.searches / found.days
    curves = {str(name): part for name, part in found.curves.groupby("policy", sort=False)}
    names = short_names(found)
    drawn = [one.policy for one in found.choices[:MOST]]
    if found.policy is not None and found.policy not in drawn:
        drawn[-1] = found.policy
    shown, ends = [], {}
    for name in [*drawn, BEST, TODAY]:
        if name not in curves:
            continue
        t = np.concatenate([[0.0], curves[name]["t"].to_numpy()])
        reward, low, high = (_from_0(curves[name][x], per) for x in ("reward", "low", "high"))
        style: Any = look(name) if name in drawn else {}
        if name in LEVELS:
            style["color"], style["linestyle"] = LEVELS[name]
        label = names.get(name, name)
        ax.plot(t, reward, label=label, markevery=0.15, ms=4, **style)
        shown.append(reward)
        if name == (found.policy or drawn[0]):  # others, with the same slope, would cover it
            ax.fill_between(t, low, high, color=style["color"], alpha=0.16, lw=0)
            shown += [low[1:], high[1:]]
        ends[label] = (float(reward[-1]), style["color"])
    unit = f"{UNITS[found.reward]} per {'search' if found.days is None else 'day'}"
    ax.set(xlabel="searches" if found.days is None else DAYS, ylabel=unit, xlim=(0, found.length))
    _limits(ax, shown)
    ax.yaxis.set_major_formatter("{x:,.3g}" if per == 1.0 else "{x:,.0f}")
    ax.spines[["top", "right"]].set_visible(False)
    _names_at_the_right(ax, ends)
    figure: Any = ax.figure
    return figure


def _from_0(x: Any, per: float) -> np.ndarray:
    """Rewards of pieces, from the first moment on."""
    values = x.to_numpy(dtype=float) * per
    return np.concatenate([values[:1], values])


def _limits(ax: Axes, shown: list[np.ndarray]) -> None:
    """From the lowest to the highest line, with some room."""
    low, high = min(x.min() for x in shown), max(x.max() for x in shown)
    span = max(high - low, 0.02 * abs(high), 1e-9)
    ax.set_ylim(max(low - 0.05 * span, 0.0), high + 0.05 * span)


def _names_at_the_right(ax: Axes, ends: dict[str, tuple[float, str]]) -> None:
    """The name of each line at its end, apart from the others."""
    bottom, top = ax.get_ylim()
    order = sorted(ends, key=lambda name: ends[name][0])
    at = np.array([(ends[name][0] - bottom) / (top - bottom) for name in order])
    for i in range(1, len(at)):
        at[i] = max(at[i], at[i - 1] + APART)
    at -= max(at[-1] - 1.0, 0.0)
    for name, y in zip(order, at, strict=True):
        ax.text(1.012, y, name, transform=ax.transAxes, va="center", color=ends[name][1])
