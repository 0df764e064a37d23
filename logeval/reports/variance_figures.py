"""Where the uncertainty of regret comes from, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from logeval.evaluation import Runs

SOURCES = ("runs", "queries", "parameters", "choice of model")


def plot_variance(runs: Runs, t: int | None = None, ax: Axes | None = None) -> Axes:
    """One bar per policy: the share of each source in the variance of its mean regret."""
    from matplotlib.figure import Figure

    table = runs.variance(t)
    tracks = table["track"].nunique() > 1
    name = table["policy"] + (" (" + table["track"] + ")" if tracks else "")
    shares = table.assign(name=name).pivot(index="name", columns="source", values="share")
    if ax is None:
        ax = Figure(figsize=(6.0, 0.8 + 0.35 * len(shares)), layout="constrained").subplots()
    start = 0.0 * shares.iloc[:, 0]
    for source in SOURCES:
        if source in shares and shares[source].max() > 0.0:
            ax.barh(shares.index, shares[source], left=start, label=source)
            start = start + shares[source]
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel("share of the variance of mean regret")
    ax.invert_yaxis()
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(SOURCES), frameon=False)
    return ax
