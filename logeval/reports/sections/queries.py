"""Query by query: a small chart for each, a table, and a picker to look at one."""

from __future__ import annotations

from typing import Any

import pandas as pd

from logeval.evaluation.results import Runs
from logeval.reports.content import Content
from logeval.reports.figures.regret import plot_regret, queries_of
from logeval.reports.page import Page
from logeval.running.words import query_names

PER_QUERY = 60  # with more queries than this, no small charts are drawn


def query_by_query(page: Page, content: Content) -> None:
    """Where the order of the policies changes from query to query, the mean hides something."""
    for i, runs in enumerate(content.runs):
        names = query_names(list(runs.table()["query"].unique()))
        if len(names) < 2:
            continue
        page.section("Query by query" + content.where(i))
        if len(names) > PER_QUERY:
            page.text(f"There are {len(names)} queries; charts are drawn for up to {PER_QUERY}.")
        else:
            _figures(page, runs, content.suffix(i))
        final = _final(runs, names)
        page.table(
            f"queries{content.suffix(i)}",
            final,
            f"Final regret by query after {runs.horizon:,} steps, mean over runs.",
            query="query",
            regret=",.1f",
            optimal_reward=",.1f",
        )


def _figures(page: Page, runs: Runs, suffix: str) -> None:
    for k, panel in enumerate(runs.panels()):
        if len(runs.curves(panel.simulator, track=panel.track)) < 2:
            continue  # nothing to compare; its numbers are in the table
        small: Any = plot_regret(runs, simulator=panel.simulator, track=panel.track, per_query=True)
        page.figure(
            f"queries-{k + 1}{suffix}",
            small.flat[0].figure,
            f"Cumulative regret on {runs.title(panel)}, mean over the runs of each query. Where "
            "the order of the curves changes from query to query, the mean over all of them hides "
            "something.",
            queries=list(queries_of(runs, panel).values()),
        )


def _final(runs: Runs, names: dict[str, str]) -> pd.DataFrame:
    rows = runs.table()
    last = rows[rows["t"] == runs.horizon]
    keys = ["query", "simulator", "track", "policy"]
    final = last.groupby(keys, as_index=False)[["regret", "optimal_reward"]].mean()
    place = {query: i for i, query in enumerate(names)}
    final = final.sort_values("query", key=lambda q: q.map(place), kind="stable")
    return final.assign(query=final["query"].map(names))
