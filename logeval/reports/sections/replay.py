"""The section of the report about replay: what the log itself says of some rankers."""

from __future__ import annotations

from typing import Any

from logeval.reports.answers.estimates import verdict
from logeval.reports.page import Content, Page


def the_replay(page: Page, content: Content) -> None:
    """Values of the targets with intervals, their support, and what to make of them."""
    estimates = content.replay
    if estimates is None:
        return
    page.section(
        "What the log itself says",
        words=("support", "effective SERPs"),
        docs="replay",
        background=True,
    )
    overall = estimates.overall()
    page.text(
        "No simulator here: clicks per SERP that each ranker would have earned on the logged "
        "traffic, estimated by weighting what the logger showed. An estimate is as good as its "
        "assumption about users, and as its support."
    )
    said = verdict(estimates)
    page.text(said.answer)
    page.notes([*said.limits, *said.next])
    page.figure(
        "replay",
        estimates.plot().figure,
        "The value of every target by every estimator, with 95% intervals over sessions; the grey "
        "marks are what the log earned on the same queries. That estimators agree is a good "
        "sign only where one of them assumes less; docs/replay.md says which users each is right "
        "for.",
    )
    figures: dict[str, Any] = {
        **dict.fromkeys(("value", "low", "high", "truth", "logged"), ".4f"),
        **dict.fromkeys(("difference", "difference_low", "difference_high"), "+.4f"),
        **dict.fromkeys(("support", "covered", "clipped"), ".1%"),
        "effective_serps": ",.0f",
        "largest_weight": ",.1f",
    }
    page.table(
        "replay",
        overall.dropna(axis=1, how="all"),
        "Over all queries: value, its interval, and its difference to the log, paired; the share "
        "of the target that the log has shown (support), and up to which K it is enough.",
        **figures,
    )
    queries = estimates.table[estimates.table["query"].notna()]
    queries = queries.assign(query=queries["query"].astype(str).map(content.names))
    page.table("replay-queries", queries.dropna(axis=1, how="all"), "The same by query.", **figures)
