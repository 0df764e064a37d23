"""Query by query: a small chart for each, a table, and a picker to look at one.

The worst and the best query come first: those on which the policy that loses least over all loses
the largest and the smallest share of what the best list would have brought.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from logeval.evaluation.results import Runs
from logeval.log.names import shortened
from logeval.reports.content import Content
from logeval.reports.details import competing, of_panel
from logeval.reports.figures.regret import query_figure
from logeval.reports.page import Cell, Page
from logeval.reports.sections.verdict import FIRST, break_even, by_trust
from logeval.running.words import number
from logeval.tracks.keys import Panel

PER_QUERY = 60  # with more queries than this, no small charts are drawn
ENDS = 2  # queries that are shown at once, the worst and as many of the best


def query_by_query(page: Page, content: Content) -> None:
    """Where the order of the policies changes from query to query, the mean hides something."""
    for i, runs in enumerate(content.runs):
        names, many = content.names, runs.table()["query"].nunique()
        if many < 2:
            continue
        page.section(
            "Query by query" + content.where(i),
            words=("query", "regret"),
            docs="statistics",
            background=True,
        )
        if many > PER_QUERY:
            page.text(f"There are {many} queries; charts are drawn for up to {PER_QUERY}.")
        else:
            _figures(page, runs, names, content.suffix(i))
        final = by_query(runs)
        page.table(
            f"queries{content.suffix(i)}",
            final.assign(query=final["query"].map(names)),
            f"Every query after {runs.horizon:,} searches, mean over runs; simulator by simulator, "
            "the worst queries first.",
            shown=_shown(runs, final, names),
            query="query",
        )


def shares_lost(runs: Runs, panel: Panel) -> pd.Series:
    """By query, worst first: what the policy that loses least over all loses, of the optimum."""
    rows = of_panel(runs.table(), panel)
    last = rows[(rows["t"] == runs.horizon) & (rows["policy"] == leader(runs, panel))]
    means = last.groupby("query")[["regret", "optimal_reward"]].mean()
    share = means["regret"] / means["optimal_reward"].where(means["optimal_reward"] > 0)
    return share.fillna(0.0).sort_values(ascending=False, kind="stable")


def leader(runs: Runs, panel: Panel) -> str:
    """The policy that loses least; the Oracle only if it is alone."""
    summary = of_panel(runs.summary(), panel)
    found = competing(summary)
    return str((summary if found.empty else found)["policy"].iloc[0])


def ends_first(queries: Sequence[str]) -> list[str]:
    """The worst and the best, then the others; of few queries all as they are."""
    if len(queries) <= 3 * ENDS:
        return list(queries)
    return [*queries[:ENDS], *queries[-ENDS:], *queries[ENDS:-ENDS]]


def _figures(page: Page, runs: Runs, names: dict[str, str], suffix: str) -> None:
    # of one policy there is nothing to compare; its numbers are in the table
    panels = [p for p in by_trust(runs) if len(of_panel(runs.summary(), p)) > 1]
    for panel in panels[:FIRST]:
        _figure(page, runs, panel, names, suffix)
    if panels[FIRST:]:
        many = len(panels) - FIRST
        with page.folded(f"The same on {many} other simulator{'s' if many > 1 else ''}"):
            for panel in panels[FIRST:]:
                _figure(page, runs, panel, names, suffix)


def _figure(page: Page, runs: Runs, panel: Panel, names: dict[str, str], suffix: str) -> None:
    shares = shares_lost(runs, panel)
    order = ends_first(list(shares.index))
    titles = {q: f"query {shortened(names[q])}: {shares[q]:.0%} lost" for q in order}
    few = len(order) <= 3 * ENDS
    page.figure(
        f"queries-{runs.panels().index(panel) + 1}{suffix}",
        query_figure(runs, panel, titles),
        f"Cumulative regret on {runs.title(panel)}, mean over the runs of each query, and the "
        f"share that {leader(runs, panel)} loses of what the best list brings. "
        + ("" if few else f"First the {ENDS} worst queries and the {ENDS} best. ")
        + "Where the order of the curves changes from query to query, the mean over all of "
        "them hides something.",
        queries=[names[query] for query in order],
        first=None if few else 2 * ENDS,
    )


def by_query(runs: Runs) -> pd.DataFrame:
    """One row per simulator, track, query and policy, at the end: regret and against the ranker."""
    rows = runs.table()
    last = rows[rows["t"] == runs.horizon]
    keys = ["simulator", "track", "query", "policy"]
    final = last.groupby(keys, as_index=False)[["regret", "optimal_reward"]].mean()
    against = runs.against_ranker(by_query=True)
    if not against.empty:
        final = final.merge(against, on=keys, how="left")
    place = {
        (panel, query): (i, j)
        for i, panel in enumerate(by_trust(runs))
        for j, query in enumerate(shares_lost(runs, panel).index)
    }
    where = zip(final["simulator"], final["track"], final["query"], strict=True)
    order = [(*place[Panel(s, t), q], n) for n, (s, t, q) in enumerate(where)]
    found = final.iloc[np.lexsort(np.array(order).T[::-1])].reset_index(drop=True)
    return found[["query", *(c for c in found if c != "query")]]


def _shown(runs: Runs, final: pd.DataFrame, names: dict[str, str]) -> dict[str, list[Cell]]:
    """The columns that decide."""
    rows: list[Any] = list(final.itertuples())
    shown: dict[str, list[Cell]] = {
        "query": [Cell(names[row.query]) for row in rows],
        "simulator": [Cell(runs.title(Panel(row.simulator, row.track))) for row in rows],
        "policy": [Cell(row.policy) for row in rows],
    }
    if "reward" in final:
        shown["reward at the end"] = _numbers(final["reward"])
    if "ranker" in final and final["ranker"].notna().any():
        shown["today's ranker"] = _numbers(final["ranker"])
        shown["break-even, searches"] = [break_even(row, runs.horizon) for row in rows]
    shown["regret"] = _numbers(final["regret"])
    return shown


def _numbers(values: pd.Series) -> list[Cell]:
    return [Cell(number(x), x) if x == x else Cell("") for x in values]
