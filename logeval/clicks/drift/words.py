"""What the fits by period say, in a line."""

from __future__ import annotations

from typing import Any

from scipy.special import bdtrc

from logeval.clicks.drift.change import LEVEL, MOVE


def changes(report: dict[str, Any]) -> bool:
    """Whether the log as a whole drifts, or more queries than chance explains."""
    drifting, tested = report["queries_drifting"], report["queries_tested"]
    more = drifting > 0 and bdtrc(drifting - 1, tested, LEVEL) < LEVEL
    return bool(report["log_drifts"] or more)


def which(report: dict[str, Any]) -> str:
    """The queries that change, and their share of the searches."""
    drifting, tested = report["queries_drifting"], report["queries_tested"]
    if not drifting:
        return f"all queries together show it, none of the {tested} tested by itself"
    return (
        f"{drifting} of {tested} queries tested, with {report['serps_drifting']:.0%} of the "
        "searches"
    )


def in_words(name: str, report: dict[str, Any]) -> str:
    """Whether users change, how many queries that is about, and what to do."""
    periods, log = len(report["periods"]), report["log"]
    if changes(report):
        return (
            f"{name}: users change over the {periods} periods: {which(report)} (chance alone: at "
            f"most {LEVEL:.0%} of the queries). Compare policies with evaluate --drift, which "
            "walks through the periods."
        )
    sure = f"by {MOVE:g} on the logit scale would be found in {log['power']:.0%} of such logs"
    if not log["tested"]:
        return (
            f"{name}: whether users change over the {periods} periods cannot be tested: too few "
            f"items were shown at one rank in several of them (a change {sure})."
        )
    return (
        f"{name}: no change of users is visible over the {periods} periods; one {sure}. Use the "
        "constant model."
    )
