"""Sections on lists and pairs beside each other, and on what elimination has left."""

from __future__ import annotations

from typing import Any

from logeval.evaluation.results import Runs
from logeval.reports.content import Content
from logeval.reports.figures.tracks import plot_relative, plot_remaining, simulators_with
from logeval.reports.page import Page, cells

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
