"""Figures of click models: termination, attraction and examination with their intervals, and
perplexity by rank. Each function draws into the given axes, or new ones, and returns them.

Figures of predictive checks: the log's clicks beside the bands of a model's users.

The picture of a log: CTR by rank, and how often the queries are asked.

Figures of replay: estimates, validation, and replayed policies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from logeval.clicks.collection import FittedModels
from logeval.clicks.fitted import FittedModel
from logeval.clicks.quality.deviations import CHECKS
from logeval.errors import LogevalError, unknown_names
from logeval.log.describe import Description
from logeval.log.names import Names
from logeval.log.queries import GivenQueries, Query
from logeval.replay.policy import curve
from logeval.reports.figures.canvas import (
    COLOURS,
    MARKERS,
    legend_below,
    log_scale,
    look,
    new_axes,
    save_figure,
)
from logeval.running.arrays import Floats

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from logeval.clicks.quality.predictive import Checks
    from logeval.clicks.quality.scores import Comparison
    from logeval.replay.estimate import Estimates
    from logeval.replay.policy import PolicyReplay
    from logeval.replay.validate import Validation


# by name: the field of what items share and its title, and how many queries are drawn
SHARED = {"termination": ("v", "position", 5), "examination": ("e", "positions", 2)}


def plot_fitted(
    fitted: FittedModel,
    what: str,
    queries: Sequence[Query] | None = None,
    ax: Axes | None = None,
    names: Names | None = None,
) -> Axes:
    """Termination by position, examination or attraction sorted, of the most frequent queries.

    As Figure 2c of "DCM bandits", where the last position is hollow, as it is not identified, and
    Figures 2b and 2a of "Stochastic rank-1 bandits" with KL.
    """
    ax = ax or new_axes()
    if what == "attraction":
        x = _attraction(fitted, queries, ax, names)
    else:
        field, x, n = SHARED[what]
        for i, query in enumerate(_chosen(fitted, queries, n)):
            values, label = _shared(fitted, field, query), _name(fitted, query, names)
            if values[0].ndim > 1:
                raise LogevalError("examination of a UBM has no single curve; plot a PBM")
            k = np.arange(1.0, len(values[0]) + 1)
            if field == "e":
                order = np.argsort(-values[0])
                _curve(ax, k, tuple(one[order] for one in values), i, label)
                continue
            k += 0.06 * (i - 2)
            _curve(ax, k, values, i, label)
            hollow: Any = {"mfc": "white", "mec": COLOURS[i % 8], "ms": 5, "zorder": 3}
            ax.plot(k[-1:], values[0][-1:], MARKERS[i % 8], **hollow)
        ax.set_xticks(range(1, int(ax.get_xlim()[1]) + 1))
    most = "" if what == "termination" else ", most of it first"
    ax.set(xlabel=f"{x}{most}", ylabel=f"{what} probability", ylim=(0, 1.02))
    legend_below(ax)
    return ax


def _attraction(
    fitted: FittedModel, queries: Sequence[Query] | None, ax: Axes, names: Names | None
) -> str:
    """All items, with bands."""
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
    return "items"


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
    if what not in (known := ["attraction", *SHARED]):
        raise unknown_names("figure", [what], known)
    if len(fitted.classes) > 1:
        raise LogevalError(
            f"{fitted.model} has values for each class of users, and no single curve; "
            "look at those of a query with logeval inspect"
        )
    return plot_fitted(fitted, what, chosen, ax, models.names)


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


def save_check_figures(checks: Checks, folder: Path) -> list[Path]:
    """One figure per check."""
    there = [check for check in CHECKS if (checks.curves["check"] == check).any()]
    figures = {check: plot_check(checks, check) for check in there}
    paths = []
    for name, figure in figures.items():
        paths.append(folder / f"{name}.png")
        save_figure(figure, paths[-1])
    return paths


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


def plot_estimates(found: Estimates, ax: Axes | None = None) -> Axes:
    """The overall value of every target by every estimator, with intervals."""
    rows = found.overall()
    ax = ax or new_axes(5.0, 1.2 + 0.28 * len(rows))
    y = np.arange(len(rows))[::-1]
    value = rows["value"].to_numpy()
    half = np.nan_to_num((rows["high"] - rows["low"]).to_numpy(dtype=float) / 2)
    ax.errorbar(value, y, xerr=half, fmt="o", color="#0072B2", capsize=2, label="estimate, 95%")
    # on the queries that each estimator covers
    ax.plot(rows["logged"], y, "|", color="#7F7F7F", ms=14, label="the log itself")
    truth = rows.drop_duplicates("target")["truth"].dropna()
    if len(truth) == 1:
        ax.axvline(truth.iloc[0], color="#D55E00", label="truth")
    several = rows["target"].nunique() > 1
    names = [
        f"{e} ({_short(t)})" if several else e
        for e, t in zip(rows["estimator"], rows["target"], strict=True)
    ]
    ax.set_yticks(y, names)
    target = "" if several else f" of {_short(rows['target'].iloc[0])}"
    ax.set(xlabel=f"clicks per SERP{target}, K = {rows['positions'].iloc[0]}")
    ax.legend(frameon=False, fontsize="small")
    return ax


def _short(target: str) -> str:
    """A target without the folders that its file or log is in."""
    kind, colon, path = target.rpartition(":")
    return f"{kind}{colon}{Path(path).name}"


def plot_validation(found: Validation, ax: Axes | None = None) -> Axes:
    """RMSE against K, the clip chosen on other parts, with the noise of the truth as floor."""
    ax = ax or new_axes(5.0, 3.6)
    rows = found.table[found.table["clip"].isna()]
    for i, (name, mine) in enumerate(rows.groupby("estimator", sort=False)):
        style = look(f"estimator {i}".replace(" ", "-"))
        ax.plot(mine["positions"], mine["rmse"], label=name, **style)
    floor = rows.drop_duplicates("positions")
    ax.fill_between(floor["positions"], 0, floor["floor"], color="#DDDDDD", label="noise of truth")
    ax.set(xlabel="positions K", ylabel="RMSE (clicks per SERP)")
    ax.set_ylim(0, None)
    ax.legend(frameon=False, fontsize="x-small", ncols=2)
    return ax


def plot_replays(found: PolicyReplay, ax: Axes | None = None) -> Axes:
    """Clicks per step of replayed policies over accepted steps, with 95% bands."""
    ax = ax or new_axes(5.0, 3.6)
    for name, mine in found.table.groupby("policy", sort=False):
        steps = np.array(sorted(mine["t"].unique()))
        points = np.array([curve(mine, int(t)) for t in steps])
        good = np.isfinite(points[:, 0])
        t, mean, half = steps[good], points[good, 0], np.nan_to_num(points[good, 1])
        style = look(str(name))
        ax.plot(t, mean, label=name, **style)
        ax.fill_between(t, mean - half, mean + half, alpha=0.2, color=style["color"], linewidth=0)
    log_scale(ax.xaxis)
    ax.set(xlabel="accepted SERPs t", ylabel="clicks per search so far")
    ax.legend(frameon=False, fontsize="small")
    return ax
