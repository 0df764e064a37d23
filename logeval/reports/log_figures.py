"""The picture of a log: CTR by rank, and how often the queries are asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from logeval.errors import LogevalError
from logeval.log.describe import Description


def save_figure(figure: Figure, path: Path | str) -> None:
    """Write a figure; an unknown ending is named."""
    known = figure.canvas.get_supported_filetypes()
    if Path(path).suffix.lstrip(".") not in known:
        raise LogevalError(f"{path}: not a kind of figure; end it with .png, .pdf or .svg")
    figure.savefig(path, dpi=150)


def plot_log(description: Description) -> Any:
    """Two axes: CTR by rank; SERPs of the queries, most frequent first, on log scales."""
    figure = Figure(figsize=(7, 2.8), layout="constrained")
    axes = figure.subplots(1, 2)
    left, right = axes
    ctr = description.ctr_by_rank
    left.bar(ctr["rank"], ctr["ctr"], color="#0072B2")
    left.set(xlabel="rank", ylabel="share of SERPs with a click", xticks=ctr["rank"])
    frequency = description.frequency
    last = np.cumsum(frequency["queries"])
    right.step(last, frequency["serps"], where="post", color="#D55E00")
    right.plot(last, frequency["serps"], ".", color="#D55E00", markersize=3)
    scale = "log" if len(frequency) else "linear"
    right.set(xscale=scale, yscale=scale, xlabel="queries, most frequent first", ylabel="SERPs")
    return axes
