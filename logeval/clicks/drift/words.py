"""What the fits by period say, in a line."""

from __future__ import annotations

from typing import Any


def in_words(name: str, report: dict[str, Any]) -> str:
    """Whether users change, how many queries that is about, and what to do."""
    periods, tested = len(report["periods"]), report["queries_tested"]
    drifting = report["queries_drifting"]
    if not tested:
        return (
            f"{name}: no query has enough held-out searches to say whether users change over the "
            f"{periods} periods; take longer periods, or a larger holdout."
        )
    if not report["log_drifts"] and not drifting:
        return (
            f"{name}: no change of users is visible over the {periods} periods ({tested} queries "
            "tested; of rarely asked ones a change is easily missed). Use the constant model."
        )
    share = report["serps_drifting"]
    return (
        f"{name}: users change over the {periods} periods: {drifting} of {tested} queries tested, "
        f"with {share:.0%} of the searches (chance alone: at most 5% of the queries). Compare "
        "policies with evaluate --drift, which walks through the periods."
    )
