"""Figures in the form of the papers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from logeval.reports.figures.canvas import legend_below, new_axes, new_panels
from logeval.reports.figures.regret import draw_curves, plot_cosine, plot_regret
from reproduction.measures import bounds as theorems
from reproduction.measures import parameters, regret, two_queries
from reproduction.run import Outcome


def figure_of(outcome: Outcome) -> Any:
    arguments = dict(outcome.experiment.figure)
    return FIGURES[arguments.pop("draw")](outcome, **arguments)


def curves(
    outcome: Outcome, parts: Sequence[str] = (), only: str = "", bounds: str = "", title: str = ""
) -> Any:
    """Regret over time: a panel for every problem of the parts, or for ``only`` one.

    ``bounds`` are those of a paper; with them the axes are logarithmic. ``title`` is filled with
    the parameters of the problem.
    """
    chosen = [part for part in outcome.runs if not parts or part in parts]
    panels = [(part, panel) for part in chosen for panel in outcome.runs[part].panels()]
    panels = [p for p in panels if only in ("", p[1].simulator)]
    figure, axes = new_panels(len(panels))
    for ax, (part, panel) in zip(axes, panels, strict=True):
        plot_regret(outcome.runs[part], ax=ax, simulator=panel.simulator, track=panel.track)
        name = next(p.title for p in outcome.experiment.parts if p.name == part)
        given = title.format(**parameters(panel.simulator)) if title else name
        ax.set_title(given or panel.simulator)
        if bounds:
            _draw_bounds(ax, outcome.horizon, theorems(bounds, panel.simulator))
    return figure


def _draw_bounds(ax: Any, horizon: int, bounds: Mapping[str, Callable[[int], float]]) -> None:
    """Bounds as dotted lines, on logarithmic axes."""
    n = np.unique(np.geomspace(min(20, horizon), horizon, 60).astype(int))
    for style, (name, bound) in zip((":", "-.", "--"), bounds.items(), strict=False):
        ax.plot(n, [bound(int(k)) for k in n], style, color="grey", label=name)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(20, horizon)
    ax.set_ylim(bottom=1)
    ax.set_ylim(top=ax.dataLim.ymax * 1.2)
    legend_below(ax)


def cosine(outcome: Outcome) -> Any:
    """Distance of the estimated theta to the true one."""
    (runs,) = outcome.runs.values()
    (panel,) = runs.panels()
    ax = new_axes(5, 3.6)
    plot_cosine(runs, panel.simulator, ax=ax)
    return ax.figure


def lines(outcome: Outcome, x: str, x_label: str, label: str) -> Any:
    """Regret at the horizon against a parameter, a line for each of the labels."""
    series, (part,) = defaultdict(list), outcome.experiment.parts
    for problem in part.problems:
        given = parameters(problem)
        measured = regret(outcome, f"{part.policies[0]} @ {problem}")
        series[label.format(**given)].append(
            (float(given[x]), measured.value, np.nan_to_num(measured.stderr))
        )
    ax = new_axes(5, 3.6)
    for marker, (name, points) in zip("os^Dv<>P", series.items(), strict=False):
        values, y, error = zip(*points, strict=True)
        ax.errorbar(values, y, error, marker=marker, ms=4, label=name)
    ax.set(xlabel=x_label, ylabel=f"regret after {outcome.horizon:,} steps")
    ax.set_ylim(bottom=0)
    return _finished(ax)


def _finished(ax: Any) -> Any:
    ax.spines[["top", "right"]].set_visible(False)
    legend_below(ax)
    return ax.figure


def terminations(outcome: Outcome) -> Any:
    """v(k) of each query."""
    ax = new_axes(5, 3.6)
    (models,) = outcome.models.values()
    for marker, (query, model) in zip("os^Dv", models.items(), strict=False):
        k = np.arange(1, len(model.v) + 1)
        ax.plot(k, model.v, marker=marker, ms=4, label=f"query {query}")
    ax.set(xlabel="position k", ylabel="termination probability")
    ax.set_ylim(0, 1)
    return _finished(ax)


def two_queries_drawn(outcome: Outcome) -> Any:
    """Sorted attraction and examination of both queries, and the regrets on them."""
    figure, axes = new_panels(4)
    models, runs = outcome.models["rank1-3"], outcome.runs["rank1-3"]
    for i, query in enumerate(two_queries(outcome), 1):
        for ax, x in zip(axes[:2], (models[query].w, models[query].e), strict=True):
            ax.plot(np.arange(1, len(x) + 1), np.sort(x)[::-1], ".-", label=f"Query {i} ({query})")
        (panel,) = runs.panels()
        draw_curves(axes[1 + i], runs.curves(panel.simulator, query, panel.track))
        axes[1 + i].set(ylabel="cumulative regret", title=f"Query {i}")
        legend_below(axes[1 + i])
    axes[0].set(xlabel="item, sorted", ylabel="attraction")
    axes[1].set(xlabel="position, sorted", ylabel="examination")
    for ax in axes[:2]:
        _finished(ax)
    return figure


FIGURES: Mapping[str, Callable[..., Any]] = {
    "curves": curves,
    "cosine": cosine,
    "lines": lines,
    "terminations": terminations,
    "two_queries": two_queries_drawn,
}
