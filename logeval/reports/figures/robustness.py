"""What the choice of the click model changes: ranks by simulator, and shares of the variance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from logeval.reports.figures.canvas import new_axes
from logeval.reports.figures.style import COLOURS, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from logeval.evaluation.results import Runs
    from logeval.evaluation.statistics.sensitivity import Sensitivity

SOURCES = {
    "runs": COLOURS[8],
    "queries": COLOURS[0],
    "parameters": COLOURS[2],
    "choice of model": COLOURS[1],
}


def plot_sensitivity(found: Sensitivity, *, ax: Axes | None = None) -> Axes:
    """A line per policy through its rank in every simulator; crossings are what does not survive.

    The title has the smallest of Kendall's taus between two simulators.
    """
    regret = found.regret
    if ax is None:
        ax = new_axes(2.2 + 1.3 * regret.shape[1], 1.0 + 0.28 * len(regret))
    ranks = regret.rank(axis=0, method="first")
    x = np.arange(regret.shape[1])
    for policy in regret.index:
        ax.plot(x, ranks.loc[policy], markersize=5, **look(policy))
    last = ranks[regret.columns[-1]]
    for policy in regret.index:
        ax.annotate(
            policy, (x[-1], last[policy]), xytext=(8, 0), textcoords="offset points",
            va="center", fontsize="small", annotation_clip=False,
        )  # fmt: skip
    ax.set_xticks(x, list(regret.columns))
    ax.set_yticks(np.arange(1, len(regret) + 1))
    ax.set(ylabel="rank by regret", xlim=(-0.2, x[-1] + 0.2))
    ax.invert_yaxis()
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    least = found.tau.sort_values("tau", kind="stable").iloc[0]
    ax.set_title(
        f"least agreement: {least['a']} and {least['b']}, tau {least['tau']:.2f} "
        f"[{least['low']:.2f}, {least['high']:.2f}]",
        fontsize="medium",
    )
    return ax


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
