"""For researchers: regret over time, its final table, query by query, and what a replay says."""

from __future__ import annotations

import math
from typing import Any

from logeval.evaluation.results import Runs
from logeval.reports.answers.runs import HEADS, of_panel, rows_of
from logeval.reports.figures.canvas import new_panels
from logeval.reports.figures.regret import (
    BANDS,
    lower_bounds,
    plot_regret,
    plot_relative,
    queries_of,
    query_figure,
)
from logeval.reports.page import Cell, Content, Page
from logeval.reports.words import paragraphs
from logeval.running.words import UNITS, interval, number
from logeval.tracks.keys import Panel

MOST = 3  # simulators side by side; the others are folded
PER_QUERY = 20  # with more queries than this, no small charts are drawn


def the_regret(page: Page, content: Content) -> None:
    """Curves and final tables: the first screen where nothing was decided, else folded."""
    for i, runs in enumerate(content.runs):
        if content.decision is None and len(content.runs) == 1:
            _regret(page, runs, "")
            continue
        title = "Regret, for researchers" if content.decision else "Regret"
        with page.section(title + content.where(i), folded=content.decision is not None):
            _regret(page, runs, content.suffix(i))


def _regret(page: Page, runs: Runs, suffix: str) -> None:
    panels = runs.panels()
    figure, axes = new_panels(len(panels))
    for ax, panel in zip(axes, panels, strict=True):
        bounds = lower_bounds(panel)
        plot_regret(runs, ax=ax, simulator=panel.simulator, track=panel.track, bounds=bounds)
    few = any(len(runs.curves(p.simulator, track=p.track)) <= BANDS for p in panels)
    page.figure(
        f"regret{suffix}", figure,
        "Expected reward lost so far against always showing the best list or pair; lower is "
        "better, and a curve that flattens has learned."
        + (" Bands: 95% intervals." if few else ""),
        first=None if len(panels) <= MOST else MOST,
    )  # fmt: skip
    for panel in panels[:MOST]:
        _final(page, runs, panel, suffix)
    if panels[MOST:]:
        with page.folded(f"{len(panels) - MOST} more"):
            for panel in panels[MOST:]:
                _final(page, runs, panel, suffix)


def _final(page: Page, runs: Runs, panel: Panel, suffix: str) -> None:
    """The policies of one simulator and track."""
    title, part = runs.title(panel), of_panel(runs.summary(), panel)
    rows = [row for row in rows_of(runs) if row.simulator == title]
    page.table(
        f"summary-{runs.panels().index(panel) + 1}{suffix}",
        part.drop(columns=["simulator", "track"]),
        f"{title}, after {runs.horizon:,} searches of a query, {UNITS[runs.units()[panel]]}; "
        "policies with a letter in common cannot be told apart.",
        shown={
            head: [Cell(str(row[i]), marked=row.alone and i == 1) for row in rows]
            for i, head in enumerate(HEADS, 1)
        },
    )


def _with_interval(x: float, low: float, high: float, sign: str = "") -> Cell:
    """A number with its interval in small print; nothing where it was not measured."""
    if x != x:
        return Cell("")
    known = low == low and (low, high) != (0.0, 0.0)
    return Cell(number(x, sign), x, f"({interval(low, high)})" if known else "")


def across(page: Page, content: Content) -> None:
    """Other views of the runs: all tracks on one axis, simulators against each other, queries."""
    for i, runs in enumerate(content.runs):
        suffix, where = content.suffix(i), content.where(i)
        _tracks(page, runs, suffix, where)
        _simulators(page, runs, suffix, where)
        _queries(page, runs, content.names, suffix, where)


def _tracks(page: Page, runs: Runs, suffix: str, where: str) -> None:
    tracks = runs.to_pandas().groupby("simulator")["track"].nunique()
    several = [str(simulator) for simulator in tracks.index[tracks > 1]]
    if not several:
        return
    with page.section(f"Lists and pairs on one axis{where}", folded=True):
        for k, simulator in enumerate(several):
            page.figure(
                f"relative-{k + 1}{suffix}", plot_relative(runs, simulator).figure,
                f"Regret on {simulator} as a share of what the best list or pair would earn; "
                "the label says what is counted.",
            )  # fmt: skip
        shares: Any = dict.fromkeys(("relative_regret", "low", "high"), ".2%")
        page.table(f"relative{suffix}", runs.relative(), **shares)


def _simulators(page: Page, runs: Runs, suffix: str, where: str) -> None:
    """Which order of the policies survives the choice of the click model."""
    for track, table in runs.by_simulator().items():
        with page.section(f"Sensitivity to the click model{where}", folded=True):
            page.table(
                f"regret-by-simulator-{track}{suffix}",
                table.reset_index(),
                "Mean regret on the same queries, the best on average first.",
            )


def _queries(page: Page, runs: Runs, names: dict[str, str], suffix: str, where: str) -> None:
    """Where the order of the policies changes from query to query, the mean hides something."""
    rows = runs.to_pandas()
    many = rows["query"].nunique()
    if many < 2:
        return
    last = rows[rows["t"] == runs.horizon]
    keys = ["simulator", "track", "query", "policy"]
    final = last.groupby(keys, as_index=False)[["regret", "optimal_reward"]].mean()
    final["relative_regret"] = final["regret"] / final["optimal_reward"]
    final = final.sort_values("relative_regret", ascending=False, kind="stable")
    with page.section(f"Regret query by query{where}", folded=True):
        if many <= PER_QUERY:
            panel = runs.panels()[0]
            titles = {query: f"query {names[query]}" for query in queries_of(runs, panel)}
            page.figure(
                f"queries{suffix}", query_figure(runs, panel, titles),
                f"Regret on {runs.title(panel)}, mean over the runs of each query.",
            )  # fmt: skip
        page.table(
            f"queries{suffix}", final.assign(query=final["query"].map(names)),
            "Regret of each query, the largest share of the best list's reward first; the file "
            "to save has all.",
            rows=PER_QUERY, relative_regret=".1%",
        )  # fmt: skip


def the_replay(page: Page, content: Content) -> None:
    """What the log itself says of some rankers, without a simulator."""
    estimates = content.replay
    if estimates is None:
        return
    with page.section("What the log itself says", folded=True):
        page.text(
            "No simulator here: clicks per SERP that each ranker would have earned on the logged "
            "traffic. An estimate is as good as its assumption about users, and as its support, "
            "the share of what the ranker would show that the log has shown."
        )
        page.lines(paragraphs(estimates.verdict()))
        page.figure(
            "replay", estimates.plot().figure,
            "The value of every target by every estimator with 95% intervals over sessions; grey: "
            "what the log earned on the same queries.",
        )  # fmt: skip
        overall: list[Any] = list(estimates.overall().itertuples())
        page.table(
            "replay", estimates.overall(),
            shown={
                "target": [Cell(row.target).short() for row in overall],
                "estimator": [Cell(row.estimator) for row in overall],
                "clicks per SERP": [
                    _with_interval(row.value, row.low, row.high) for row in overall
                ],
                "over the log": [
                    _with_interval(row.difference, row.difference_low, row.difference_high, "+")
                    for row in overall
                ],
                "support": [
                    Cell("" if math.isnan(row.support) else f"{row.support:.0%}", row.support)
                    for row in overall
                ],
            },
        )  # fmt: skip
