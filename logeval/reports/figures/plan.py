"""Power against searches: an A/B test and two interleavings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logeval.planning.effects import AB, CREDIT
from logeval.reports.figures.canvas import log_scale, new_axes
from logeval.reports.figures.style import look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from logeval.planning.experiment import ExperimentPlan


def plot_power(found: ExperimentPlan, ax: Axes | None = None) -> Axes:
    """The probability to find the difference by searches, with what was asked for as a line."""
    ax = ax or new_axes(5.0, 3.4)
    rows = found.curve[found.curve["metric"].isin([found.facts["metric"], CREDIT])]
    for i, design in enumerate(dict.fromkeys(rows["design"])):
        mine = rows[rows["design"] == design]
        style = {**look(f"estimator {i}".replace(" ", "-")), "marker": ""}
        label = f"{design}, {found.facts['metric']}" if design == AB else design
        ax.plot(mine["searches"], mine["power"], label=label, **style)  # type: ignore[arg-type]
    ax.axhline(found.facts["power"], color="#7F7F7F", lw=0.8, ls=":")
    log_scale(ax.xaxis)
    title = f"{found.facts['treatment']} against {found.facts['control']}"
    ax.set(xlabel="searches", ylabel="power", ylim=(0.0, 1.02), title=title)
    ax.legend(frameon=False, fontsize="small")
    return ax
