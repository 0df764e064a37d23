"""The picture of a log: CTR by rank, and how often the queries are asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from logeval.log.describe import Description
from logeval.reports.figures.canvas import log_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_log(description: Description, axes: Sequence[Axes] | None = None) -> Sequence[Axes]:
    """Two axes: CTR by rank; SERPs of the queries, most frequent first, on log scales.

    Of a table of counts impressions in the place of SERPs.
    """
    if axes is None:
        axes = Figure(figsize=(7, 2.8), layout="constrained").subplots(1, 2)
    left, right = axes
    ctr = description.ctr_by_rank
    left.bar(ctr["rank"], ctr["ctr"], color="#0072B2")
    frequency = description.frequency
    what, many = ("SERPs", "serps") if "serps" in frequency else ("impressions", "impressions")
    left.set(xlabel="rank", ylabel=f"share of {what} with a click", xticks=ctr["rank"])
    last = np.cumsum(frequency["queries"])
    right.step(last, frequency[many], where="post", color="#D55E00")
    right.plot(last, frequency[many], ".", color="#D55E00", markersize=3)
    for axis in (right.xaxis, right.yaxis) if len(frequency) else ():
        log_scale(axis)
    right.set(xlabel="queries, most frequent first", ylabel=what)
    return axes
