"""Sections on runs with more than one simulator, or draws of its parameters."""

from __future__ import annotations

from typing import Any

from logeval.evaluation.results import Runs
from logeval.evaluation.statistics.sensitivity import sensitivity
from logeval.reports.content import Content
from logeval.reports.figures.robustness import plot_sensitivity, plot_variance
from logeval.reports.page import Page

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
