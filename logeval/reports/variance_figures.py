"""Where the uncertainty of regret comes from, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logeval.reports.figures import new_axes
from logeval.reports.style import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from logeval.evaluation.results import Runs

SOURCES = {
    "runs": COLOURS[8],
    "queries": COLOURS[0],
    "parameters": COLOURS[2],
    "choice of model": COLOURS[1],
}


def plot_variance(runs: Runs, t: int | None = None, ax: Axes | None = None) -> Axes:
    """One bar per policy: the share of each source in the variance of its mean regret."""
    table = runs.variance(t)
    tracks = table["track"].nunique() > 1
    name = table["policy"] + (" (" + table["track"] + ")" if tracks else "")
    shares = table.assign(name=name).pivot(index="name", columns="source", values="share")
    if ax is None:
        ax = new_axes(6.0, 0.9 + 0.3 * len(shares))
    start = 0.0 * shares.iloc[:, 0]
    for source, colour in SOURCES.items():
        if source in shares and shares[source].max() > 0.0:
            ax.barh(shares.index, shares[source], left=start, label=source, color=colour)
            start = start + shares[source]
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel("share of the variance of mean regret")
    ax.invert_yaxis()
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(SOURCES), frameon=False)
    return ax
