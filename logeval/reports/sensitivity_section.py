"""The section of the report on runs with more than one simulator."""

from __future__ import annotations

from logeval.evaluation.results import Runs
from logeval.evaluation.sensitivity import sensitivity
from logeval.reports.page import Page
from logeval.reports.sensitivity_figure import plot_sensitivity


def the_simulators(page: Page, runs: Runs, suffix: str) -> None:
    """Which conclusion survives the choice of the click model; nothing with one simulator."""
    tracks: dict[str, set[str]] = {}
    for panel in runs.panels():
        tracks.setdefault(panel.track, set()).add(panel.simulator)
    for track, simulators in tracks.items():
        if len(simulators) < 2 or not _comparable(runs, track):
            continue
        page.section("Sensitivity to the click model" + (f": {runs.folder}" if suffix else ""))
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
            **dict.fromkeys(("tau", "low", "high"), ".2f"),
        )
        page.table(
            f"regret-by-simulator-{track}{suffix}",
            found.regret.rename_axis("policy").reset_index(),
            "Mean regret of each policy, the best on average over simulators first.",
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
