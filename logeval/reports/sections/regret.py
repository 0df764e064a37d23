"""Sections on all queries together: regret over time, final regret.

Sections on lists and pairs beside each other, and on what elimination has left.

Sections on runs with more than one simulator, or draws of its parameters.

Query by query: a small chart for each, a table, and a picker to look at one.

The worst and the best query come first: those on which the policy that loses least over all loses
the largest and the smallest share of what the best list would have brought.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from logeval.evaluation.results import Runs
from logeval.evaluation.statistics.robustness import sensitivity
from logeval.log.names import shortened
from logeval.reports.figures.canvas import new_panels
from logeval.reports.figures.regret import (
    BANDS,
    lower_bounds,
    plot_regret,
    plot_relative,
    plot_remaining,
    plot_sensitivity,
    plot_to_the_best,
    plot_variance,
    query_figure,
    simulators_with,
)
from logeval.reports.headline import competing, flattens, of_panel
from logeval.reports.page import Cell, Content, Page, cells
from logeval.reports.sections.verdict import FIRST, break_even, by_trust, first
from logeval.running.words import UNITS, interval, number, p_cell
from logeval.tracks.keys import Panel

# how numbers are shown where all columns are
FORMATS: dict[str, Any] = {
    **dict.fromkeys(("relative_regret", "share_of_optimum", "optimal_steps"), ".2%"),
    **dict.fromkeys(("regret", "low", "high", "stderr"), ",.1f"),
    **dict.fromkeys(("difference", "difference_low", "difference_high"), "+,.1f"),
    "p": ".4f",
}
ASSUMED = "Oracle(order=assumed)"


def curves(page: Page, content: Content) -> None:
    """Regret over time; on a logarithmic axis too where curves flatten."""
    for i, runs in enumerate(content.runs):
        page.section("Regret over time" + content.where(i), words=("regret",), docs="statistics")
        found = {panel: runs.curves(panel.simulator, track=panel.track) for panel in by_trust(runs)}
        flat = [panel for panel, its in found.items() if flattens(its)]
        drawn = [*((panel, False) for panel in found), *((panel, True) for panel in flat)]
        figure, axes = new_panels(len(drawn))
        for ax, (panel, log_x) in zip(axes, drawn, strict=True):
            plot_regret(
                runs, ax=ax, simulator=panel.simulator, track=panel.track, log_x=log_x,
                bounds=lower_bounds(panel),
            )  # fmt: skip
            if log_x:
                ax.set_title(f"{runs.title(panel)}, log searches")
        text = (
            "Cumulative regret: expected reward lost so far against always showing the best list "
            "or pair; lower is better, and a curve that flattens has learned."
        )
        text += (
            " Bands are 95% intervals at each search."
            if any(len(its) <= BANDS for its in found.values())
            else f" With more than {BANDS} policies bands would cover each other; the intervals "
            "are in the table."
        )
        if ASSUMED in set(runs.table()["policy"]):
            text += (
                f" {ASSUMED} is the best list in the assumed order: the best items from the first "
                "position down. No policy that assumes this order can stay below it for long."
            )
        if flat:
            text += " On the logarithmic axis logarithmic regret is a straight line."
        page.figure(f"regret{content.suffix(i)}", figure, text, first=first(len(drawn)))


def final_tables(page: Page, content: Content) -> None:
    """The policies at the horizon, a table for each simulator and track; all pairs."""
    for i, runs in enumerate(content.runs):
        page.section(
            "Final regret" + content.where(i),
            words=("regret", "interval", "cannot be told apart"),
            docs="statistics",
        )
        summary, suffix = runs.summary(), content.suffix(i)
        _differences(page, runs, summary, suffix)
        page.text(
            f"After {runs.horizon:,} searches of a query: regret with its 95% interval, paired "
            "difference to the best policy with interval and p that hold for all pairs together, "
            "and what was earned as a share of what the best list would have."
        )
        panels = by_trust(runs)
        many = first(len(panels))
        for panel in panels[:many]:
            _final(page, runs, panel, suffix)
        if many is not None:
            with page.folded(f"{len(panels) - many} more"):
                for panel in panels[many:]:
                    _final(page, runs, panel, suffix)
        pairs = runs.pairs()
        if len(pairs) > 1:
            both = pairs["better"] + " before " + pairs["worse"]
            page.table(
                f"pairs{suffix}",
                pairs,
                "All pairs of policies",
                shown={
                    "simulator": [(s, None) for s in pairs["simulator"]],
                    "pair": [(b, None) for b in both],
                    "difference": _numbers(pairs["difference"]),
                    "95% interval": _intervals(pairs["low"], pairs["high"]),
                    "p": _ps(pairs["p"]),
                    "ratio on a typical query": _numbers(pairs["ratio"]),
                    "its p": _ps(pairs["ratio_p"]),
                },
                folded=True,
            )


def _final(page: Page, runs: Runs, panel: Panel, suffix: str) -> None:
    """The policies of one simulator and track."""
    part = of_panel(runs.summary(), panel)
    page.table(
        f"summary-{runs.panels().index(panel) + 1}{suffix}",
        part.drop(columns=["simulator", "track"]),
        f"{runs.title(panel)}, {UNITS[runs.units()[panel]]}.",
        shown=_seven(part),
        **FORMATS,
    )


def _differences(page: Page, runs: Runs, summary: pd.DataFrame, suffix: str) -> None:
    """The paired differences that the verdict rests on."""
    parts = {panel: competing(of_panel(summary, panel)) for panel in by_trust(runs)}
    parts = {panel: part for panel, part in parts.items() if len(part) > 1}
    if not parts:
        return
    height = 0.8 + 0.4 * max(map(len, parts.values()))
    figure, axes = new_panels(len(parts), height=height)
    for ax, (panel, part) in zip(axes, parts.items(), strict=True):
        title = f"{runs.title(panel)}: difference to {part['policy'].iloc[0]}"
        plot_to_the_best(ax, part, title, UNITS[runs.units()[panel]])
    page.figure(
        f"differences{suffix}",
        figure,
        "Regret of each policy minus that of the best one, paired over queries (or the runs of a "
        "single one), with 95% intervals that hold for all pairs of policies of a simulator at "
        "once. An interval that leaves 0 out tells the two apart.",
        first=first(len(parts)),
    )


def _seven(part: pd.DataFrame) -> dict[str, list[tuple[str, Any]]]:
    """The columns that decide."""
    return {
        "policy": [(p, None) for p in part["policy"]],
        "regret": _numbers(part["regret"]),
        "95% interval": _intervals(part["low"], part["high"]),
        "to the best": [
            ("best", 0.0) if abs(v) < 1e-9 else (number(v, "+"), v) for v in part["difference"]
        ],
        "its 95% interval": _intervals(part["difference_low"], part["difference_high"]),
        "p": _ps(part["p"]),
        "of the best list": [(f"{v:.1%}", v) for v in part["share_of_optimum"]],
    }


def _numbers(values: pd.Series) -> list[tuple[str, Any]]:
    return [(number(v), v) if v == v else ("", None) for v in values]


def _intervals(low: pd.Series, high: pd.Series) -> list[tuple[str, Any]]:
    ends = zip(low, high, strict=True)
    return [(interval(a, b), a) if a == a and (a, b) != (0, 0) else ("", None) for a, b in ends]


def _ps(values: pd.Series) -> list[tuple[str, Any]]:
    return [(p_cell(p), p if p == p else None) for p in values]


SHARES: dict[str, Any] = dict.fromkeys(("relative_regret", "low", "high"), ".2%")


def across_tracks(page: Page, content: Content) -> None:
    """Lists and pairs on one axis, what elimination has left, how hard the queries are."""
    for i, runs in enumerate(content.runs):
        rows, suffix = runs.table(), content.suffix(i)
        left = simulators_with(runs, "rows_left")
        groups = rows.groupby("simulator")["track"].nunique()
        several = [str(simulator) for simulator in groups.index[groups > 1]]
        if not several and not left:
            continue
        page.section(
            "Lists and pairs on one axis" + content.where(i),
            words=("rank-1 track", "relative regret"),
            docs="policies",
            background=True,
        )
        for k, simulator in enumerate(several):
            page.figure(
                f"relative-{k + 1}{suffix}",
                plot_relative(runs, simulator).figure,
                f"Regret on {simulator} as a share of what the best list or pair would have "
                "earned, so that lists and single pairs compare. The label says what is "
                "counted: the list, the pair at its most examined position (top pair), or the pair "
                "of the rank-1 track.",
            )
        if several:
            page.table(
                f"relative{suffix}",
                runs.relative(),
                "The same at the last search, with 95% intervals.",
                **SHARES,
            )
        for k, simulator in enumerate(left):
            if not _eliminated(runs, simulator):
                page.text(f"Nothing was eliminated on {simulator} in {runs.horizon:,} searches.")
                continue
            page.figure(
                f"remaining-{k + 1}{suffix}",
                plot_remaining(runs, simulator).figure,
                f"Items (rows) and positions (columns) that elimination has left on {simulator}, "
                "on average. A policy has found the best pair when one of each remains.",
            )
        _hardness(page, runs, content.names, suffix)


def _hardness(page: Page, runs: Runs, names: dict[str, str], suffix: str) -> None:
    """mu, p_max and gamma; the bound in words where it says nothing."""
    hardness = runs.hardness()
    if hardness.empty:
        return
    place = {query: i for i, query in enumerate(names)}
    hardness = hardness.sort_values("query", key=lambda q: q.map(place), kind="stable")
    hardness["query"] = hardness["query"].map(names)
    vacuous = hardness["bound"] > hardness["n"]
    text = (
        "How hard the rank-1 problem of each query is (mu, p_max and gamma of the Rank1ElimKL "
        "paper, equations 3 to 5)."
    )
    if vacuous.all():
        text += (
            f" Theorem 1's bound on the regret of Rank1ElimKL is at least "
            f"{hardness['bound'].min():,.3g}, more than the {runs.horizon:,} searches could cost: "
            "it says nothing here."
        )
    elif vacuous.any():
        text += f" Theorem 1's bound says nothing for {vacuous.sum()} queries (above the horizon)."
    columns = ["simulator", "query", "items", "positions", "mu", "p_max", "gamma"]
    if not vacuous.all():
        columns = ["query", "items", "positions", "mu", "p_max", "gamma", "bound"]
    said = hardness.assign(bound=hardness["bound"].where(~vacuous))
    shown = {c.replace("_", " "): cells(said[c]) for c in columns}
    page.text(text)
    caption = "Hardness of each query"
    hardness = hardness.dropna(axis=1, how="all")
    page.table(f"hardness{suffix}", hardness, caption, shown=shown, folded=True, bound=",.3g")


def _eliminated(runs: Runs, simulator: str) -> bool:
    """Whether something was."""
    left = [c[["rows_left", "columns_left"]] for c in runs.remaining(simulator).values()]
    return any((part.iloc[-1] < part.iloc[0]).any() for part in left)


TWO_DIGITS: dict[str, Any] = dict.fromkeys(("tau", "low", "high"), ".2f")


def the_sensitivity(page: Page, content: Content) -> None:
    """Which conclusion survives the choice of the click model; nothing with one simulator."""
    for i, runs in enumerate(content.runs):
        _sensitivity(page, runs, content.suffix(i), content.where(i))


def _sensitivity(page: Page, runs: Runs, suffix: str, where: str) -> None:
    tracks: dict[str, set[str]] = {}
    for panel in runs.panels():
        tracks.setdefault(panel.track, set()).add(panel.simulator)
    for track, simulators in tracks.items():
        if len(simulators) < 2 or not _comparable(runs, track):
            continue
        page.section(
            f"Sensitivity to the click model{where}",
            words=("simulator", "regret"),
            docs="simulators",
            background=True,
        )
        found = sensitivity(runs, track)
        page.figure(
            f"sensitivity-{track}{suffix}",
            plot_sensitivity(found).figure,
            "Rank of each policy by mean regret, simulator by simulator, on the same queries. "
            "Lines that cross are conclusions that depend on the click model. Kendall's tau is "
            "the share of pairs of policies in the same order minus the share in the opposite one.",
        )
        page.table(
            f"agreement-{track}{suffix}",
            found.tau,
            "Agreement of two simulators on the order of the policies: Kendall's tau with its 95% "
            "bootstrap interval over queries.",
            **TWO_DIGITS,
        )
        page.table(
            f"regret-by-simulator-{track}{suffix}",
            found.regret.rename_axis("policy").reset_index(),
            "Mean regret of each policy, the best on average over simulators first.",
        )


def the_variance(page: Page, content: Content) -> None:
    """Where the variance of mean regret comes from, where there is more than runs and queries."""
    for i, runs in enumerate(content.runs):
        rows = runs.table()
        if rows["simulator"].nunique() < 2 and not rows["draw"].any():
            continue
        page.section(
            f"Where the uncertainty comes from{content.where(i)}",
            words=("draw", "run, replica"),
            docs="statistics",
            background=True,
        )
        page.figure(
            f"variance{content.suffix(i)}",
            plot_variance(runs).figure,
            "Share of runs, queries, draws of the parameters and the choice of the click model in "
            "the variance of mean regret. A large share of one says where more of it would help.",
        )
        page.table(
            f"variance{content.suffix(i)}",
            runs.variance(),
            "The same as a table: each component, what it adds to the variance of the mean, and "
            "its share",
            folded=True,
            share=".1%",
        )


def _comparable(runs: Runs, track: str) -> bool:
    """Whether two policies, the ends of the scale aside, were run on all simulators."""
    rows = runs.table()
    rows = rows[(rows["track"] == track) & ~rows["policy"].isin(("Random", "Oracle"))]
    if rows.empty:
        return False
    queries = rows.groupby("simulator")["query"].unique()
    policies = rows.groupby("simulator")["policy"].unique()
    shared = set.intersection(*(set(p) for p in policies))
    return len(shared) > 1 and bool(set.intersection(*(set(q) for q in queries)))


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
        shown["reward at the end"] = _query_numbers(final["reward"])
    if "ranker" in final and final["ranker"].notna().any():
        shown["today's ranker"] = _query_numbers(final["ranker"])
        shown["break-even, searches"] = [break_even(row, runs.horizon) for row in rows]
    shown["regret"] = _query_numbers(final["regret"])
    return shown


def _query_numbers(values: pd.Series) -> list[Cell]:
    return [Cell(number(x), x) if x == x else Cell("") for x in values]
