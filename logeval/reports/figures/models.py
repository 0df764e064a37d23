"""Figures of click models: termination, attraction and examination with their intervals, and
perplexity by rank. Each function draws into the given axes, or new ones, and returns them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from logeval.clicks.collection import FittedModels
from logeval.clicks.fitted import FittedModel
from logeval.errors import LogevalError, unknown_names
from logeval.log.names import Names
from logeval.log.queries import GivenQueries, Query
from logeval.reports.figures.canvas import legend_below, new_axes
from logeval.reports.figures.style import COLOURS, MARKERS
from logeval.running.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from logeval.clicks.quality.comparison import Comparison


def plot_termination(
    fitted: FittedModel,
    queries: Sequence[Query] | None = None,
    ax: Axes | None = None,
    names: Names | None = None,
) -> Axes:
    """Termination probabilities by position of the five most frequent queries (or those given).

    As Figure 2c of "DCM bandits". The last position is drawn hollow: it is not identified.
    """
    ax = ax or new_axes()
    for i, query in enumerate(_chosen(fitted, queries, 5)):
        values = _shared(fitted, "v", query)
        k, value = np.arange(1, len(values[0]) + 1) + 0.06 * (i - 2), values[0]
        _curve(ax, k, values, i, _name(fitted, query, names))
        ax.plot(k[-1:], value[-1:], MARKERS[i % 8], mfc="white", mec=COLOURS[i % 8], ms=5, zorder=3)
    ax.set(xlabel="position", ylabel="termination probability", ylim=(0, 1))
    ax.set_xticks(range(1, int(ax.get_xlim()[1]) + 1))
    legend_below(ax)
    return ax


def plot_examination(
    fitted: FittedModel,
    queries: Sequence[Query] | None = None,
    ax: Axes | None = None,
    names: Names | None = None,
) -> Axes:
    """Examination probabilities, sorted (as Figure 2b of "Stochastic rank-1 bandits" with KL)."""
    ax = ax or new_axes()
    for i, query in enumerate(_chosen(fitted, queries, 2)):
        values = _shared(fitted, "e", query)
        if values[0].ndim > 1:
            raise LogevalError("examination of a UBM has no single curve; plot a PBM")
        order = np.argsort(-values[0])
        rank = np.arange(1, len(order) + 1)
        _curve(ax, rank, tuple(x[order] for x in values), i, _name(fitted, query, names))
    ax.set(
        xlabel="positions, most examined first", ylabel="examination probability", ylim=(0, 1.02)
    )
    legend_below(ax)
    return ax


def plot_attraction(
    fitted: FittedModel,
    queries: Sequence[Query] | None = None,
    ax: Axes | None = None,
    names: Names | None = None,
) -> Axes:
    """Attraction probabilities of all items, sorted, with bands (as Figure 2a of the same)."""
    ax = ax or new_axes()
    field = _item_field(fitted)
    for i, query in enumerate(_chosen(fitted, queries, 2)):
        q = fitted.index[query]
        span = slice(fitted.offsets[q], fitted.offsets[q + 1])
        estimate = fitted.estimates[field]
        value, low, high = (x[span] for x in (estimate.value, estimate.low, estimate.high))
        order = np.argsort(-value, kind="stable")
        rank = np.arange(1, len(value) + 1)
        ax.fill_between(rank, low[order], high[order], color=COLOURS[i % 8], alpha=0.15, lw=0)
        label = f"{_name(fitted, query, names)} (L = {len(value)})"
        ax.plot(rank, value[order], color=COLOURS[i % 8], label=label)
    ax.set(xlabel="items, most attractive first", ylabel="attraction probability", ylim=(0, 1))
    legend_below(ax)
    return ax


PLOTS = {
    "termination": plot_termination,
    "attraction": plot_attraction,
    "examination": plot_examination,
}


def plot_parameters(
    models: FittedModels,
    what: str,
    model: str | None = None,
    queries: GivenQueries = None,
    ax: Axes | None = None,
) -> Axes:
    """The termination, attraction or examination of a model, with intervals.

    By default of the first model and its most frequent queries.
    """
    fitted, given = models.named(model), models.names.all_meant(queries)
    chosen = None if given is None else [models.the_query(fitted, q) for q in given]
    if what not in PLOTS:
        raise unknown_names("figure", [what], PLOTS)
    if len(fitted.classes) > 1:
        raise LogevalError(
            f"{fitted.model} has values for each class of users, and no single curve; "
            "look at those of a query with logeval inspect"
        )
    return PLOTS[what](fitted, chosen, ax, models.names)


def plot_perplexity(
    comparison: Comparison, measure: str = "perplexity", ax: Axes | None = None
) -> Axes:
    """Perplexity by rank of each model, with bootstrap intervals; lower is better, 1 perfect.

    The measure may be conditional-perplexity too.
    """
    ax = ax or new_axes(5.4, 3.4)
    quality = comparison.table
    rows = quality[(quality["measure"] == measure) & quality["rank"].notna()]
    groups = list(rows.groupby("model", sort=False))
    for i, (name, part) in enumerate(groups):
        shift = 0.24 * (i / max(len(groups) - 1, 1) - 0.5)
        rank = part["rank"].to_numpy(dtype=np.float64)
        values = tuple(part[c].to_numpy() for c in ("value", "low", "high"))
        _curve(ax, rank + shift, values, i, str(name))
    ax.set(xlabel="rank", ylabel=measure.replace("-", " "))
    ax.set_xticks(sorted(rows["rank"].unique()))
    legend_below(ax)
    return ax


def plot_differences(
    comparison: Comparison, measure: str = "log-likelihood", ax: Axes | None = None
) -> Axes:
    """How far each model is from the best one over all ranks, with paired 95% intervals."""
    quality = comparison.table
    rows = quality[quality["baseline"].notna() & (quality["measure"] == measure)]
    rows = rows[rows["rank"].isna() & rows["frequency"].isna()]
    if rows.empty:
        raise LogevalError("there is one model only; a difference needs two")
    ax = ax or new_axes(4.6, 1.2 + 0.3 * len(rows))
    value, low, high = (rows[c].to_numpy() for c in ("value", "low", "high"))
    bars = np.maximum([value - low, high - value], 0.0)
    ax.axvline(0, color="grey", lw=0.8)
    ax.errorbar(value, np.arange(len(rows)), xerr=bars, fmt="o", color=COLOURS[0], ms=4, capsize=3)
    ax.set_yticks(range(len(rows)), list(rows["model"]))
    ax.margins(y=0.25)
    ax.invert_yaxis()
    ax.set_xlabel(f"{measure.replace('-', ' ')}, difference to {rows['baseline'].iloc[0]}")
    return ax


def _curve(ax: Axes, x: np.ndarray, values: tuple[Floats, ...], i: int, label: str) -> None:
    """The i-th of some curves (values, low and high) with error bars."""
    value, low, high = values
    bars = np.nan_to_num(np.maximum([value - low, high - value], 0.0))
    line = "-" if i < len(COLOURS) else "--"
    ax.errorbar(
        x, value, bars, color=COLOURS[i % 8], marker=MARKERS[i % 8], ls=line, ms=4, lw=1,
        elinewidth=0.7, label=label,
    )  # fmt: skip


def _chosen(fitted: FittedModel, queries: Sequence[Query] | None, n: int) -> list[Query]:
    if queries is None:
        return fitted.queries[:n]
    missing = [str(q) for q in queries if q not in fitted.index]
    if missing:
        raise LogevalError(f"{fitted.model} was not fitted for query {', '.join(missing)}")
    return list(queries)


def _name(fitted: FittedModel, query: Query, names: Names | None) -> str:
    return f"query {(names or Names()).titles([str(q) for q in fitted.index])[str(query)]}"


def _shared(fitted: FittedModel, field: str, query: Query) -> tuple[Floats, ...]:
    """Values, low and high of a parameter that the items share."""
    if field not in fitted.estimates:
        raise LogevalError(f"{fitted.model} has no such parameter; plot another model")
    estimate, q = fitted.estimates[field], fitted.index[query]
    g, K = fitted.group(q), fitted.positions[q]
    return tuple(x[g][:K] for x in (estimate.value, estimate.low, estimate.high))


def _item_field(fitted: FittedModel) -> str:
    fields = [p.field for p in fitted.kind.PARAMETERS if p.kind == "item"]
    if not fields:
        raise LogevalError(f"{fitted.model} has no parameter of items; plot another model")
    return fields[0]
