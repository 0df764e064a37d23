"""Query by query: a small chart for each, a table, and a picker to look at one."""

from __future__ import annotations

import pandas as pd

from logeval.evaluation.results import Runs
from logeval.reports.charts import legend_chart, line_chart
from logeval.reports.content import Content
from logeval.reports.page import Page
from logeval.reports.words import query_names

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
            _charts(page, runs, names, content.suffix(i))
        final = _final(runs, names)
        page.table(
            f"queries{content.suffix(i)}",
            final,
            f"Final regret by query after {runs.horizon:,} steps, mean over runs.",
            query="query",
            regret=",.1f",
            optimal_reward=",.1f",
        )


def _charts(page: Page, runs: Runs, names: dict[str, str], suffix: str) -> None:
    rows = runs.table()
    for k, panel in enumerate(runs.panels()):
        mine = rows[(rows["simulator"] == panel.simulator) & (rows["track"] == panel.track)]
        if mine["policy"].nunique() < 2:  # nothing to compare; its numbers are in the table
            continue
        present = set(mine["query"])
        charts = {
            title: line_chart(
                runs.curves(panel.simulator, query, panel.track),
                title, width=300, height=200, bands=False, legend=False, y_label="regret",
            )
            for query, title in names.items()
            if query in present
        }  # fmt: skip
        page.charts(
            f"queries-{k + 1}{suffix}",
            charts,
            f"Cumulative regret on {runs.title(panel)}, mean over the runs of each query. Where "
            "the order of the curves changes from query to query, the mean over all of them hides "
            "something.",
            legend=legend_chart(sorted(set(mine["policy"]))),
        )


def _final(runs: Runs, names: dict[str, str]) -> pd.DataFrame:
    rows = runs.table()
    last = rows[rows["t"] == runs.horizon]
    keys = ["query", "simulator", "track", "policy"]
    final = last.groupby(keys, as_index=False)[["regret", "optimal_reward"]].mean()
    place = {query: i for i, query in enumerate(names)}
    final = final.sort_values("query", key=lambda q: q.map(place), kind="stable")
    return final.assign(query=final["query"].map(names))
