"""Sections on all queries together: regret over time, final regret."""

from __future__ import annotations

from typing import Any

import pandas as pd

from logeval.evaluation.results import Runs
from logeval.reports.content import Content
from logeval.reports.details import competing, of_panel
from logeval.reports.figures.canvas import new_panels
from logeval.reports.figures.regret import BANDS, lower_bounds, plot_regret, plot_to_the_best
from logeval.reports.limits import flattens
from logeval.reports.page import Page
from logeval.reports.sections.verdict import by_trust, first
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


def _numbers(values: pd.Series, sign: str = "") -> list[tuple[str, Any]]:
    return [(number(v, sign), v) if v == v else ("", None) for v in values]


def _intervals(low: pd.Series, high: pd.Series) -> list[tuple[str, Any]]:
    ends = zip(low, high, strict=True)
    return [(interval(a, b), a) if a == a and (a, b) != (0, 0) else ("", None) for a, b in ends]


def _ps(values: pd.Series) -> list[tuple[str, Any]]:
    return [(p_cell(p), p if p == p else None) for p in values]
