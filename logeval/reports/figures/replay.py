"""Figures of replay: estimates, validation, replayed policies, and the cross-check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from logeval.replay.replays import curve
from logeval.reports.figures.canvas import log_scale, new_axes
from logeval.reports.figures.style import look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from logeval.replay.agreement import CrossCheck
    from logeval.replay.estimates import Estimates
    from logeval.replay.replays import PolicyReplay
    from logeval.replay.validation import Validation


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


def plot_clips(found: Validation, ax: Axes | None = None) -> Axes:
    """RMSE against the clip at the largest K."""
    table, positions = found.table, int(found.table["positions"].max())
    ax = ax or new_axes(5.0, 3.6)
    rows = table[(table["positions"] == positions) & table["clip"].notna()]
    for i, (name, mine) in enumerate(rows.groupby("estimator", sort=False)):
        ax.plot(mine["clip"], mine["rmse"], label=name, **look(f"estimator-{i}"))
    ax.axhline(rows["floor"].iloc[0], color="#7F7F7F", linestyle=":", label="noise of truth")
    log_scale(ax.xaxis)
    ax.set(xlabel="clip M", ylabel=f"RMSE at K = {positions}")
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


def plot_cross_check(found: CrossCheck, ax: Axes | None = None) -> Axes:
    """Every policy by every method."""
    table = found.table
    methods = list(dict.fromkeys(table["method"]))
    names = list(dict.fromkeys(table["policy"]))
    ax = ax or new_axes(6.0, 1.2 + 0.45 * len(methods))
    for i, name in enumerate(names):
        mine = table[table["policy"] == name].set_index("method").loc[methods]
        y = np.arange(len(methods))[::-1] - 0.5 + (i + 1) / (len(names) + 1)
        half = np.nan_to_num((mine["high"] - mine["low"]).to_numpy() / 2)
        style = look(name)
        ax.errorbar(
            mine["value"], y, xerr=half, fmt=style["marker"], color=style["color"], capsize=2,
            label=name,
        )  # fmt: skip
    ax.set_yticks(np.arange(len(methods))[::-1], methods)
    ax.set(xlabel="clicks per SERP")
    ax.legend(frameon=False, fontsize="small")
    return ax
