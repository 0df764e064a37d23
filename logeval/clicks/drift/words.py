"""What the fits by period say, in a line."""

from __future__ import annotations

from typing import Any

from scipy.special import bdtrc

LEVEL = 0.05  # of the test of a query; so many of those tested may be chance


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
    periods, tested = len(report["periods"]), report["queries_tested"]
    if not tested:
        return (
            f"{name}: no query has enough held-out searches to say whether users change over the "
            f"{periods} periods; take longer periods, or a larger holdout."
        )
    if changes(report):
        return (
            f"{name}: users change over the {periods} periods: {which(report)} (chance alone: at "
            f"most {LEVEL:.0%} of the queries). Compare policies with evaluate --drift, which "
            "walks through the periods."
        )
    if not report["queries_drifting"]:
        return (
            f"{name}: no change of users is visible over the {periods} periods ({tested} queries "
            "tested; of rarely asked ones a change is easily missed). Use the constant model."
        )
    return (
        f"{name}: users may change over the {periods} periods: {which(report)}, no more than "
        "chance alone brings. Use the constant model, and look again with more searches."
    )
