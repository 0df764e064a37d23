"""Logs that hold only searches with a click, as those of purchases do.

A log without a single empty search was selected by clicks if clicks as frequent as its own, each by
itself, would leave ``EXPECTED`` searches empty or more. Selection divides the probabilities of all
clicks on a list by that of any click there: what stays right is how often results of one list are
clicked relative to each other. The share of empty searches cannot be had from the others but by
assuming how clicks of a search go together, so nothing is corrected here; it is said.
"""

from __future__ import annotations

import numpy as np

from logeval.clicks.estimation.patterns import FoldedClicks, Patterns
from logeval.log.describe import CLICKS_PER_SERP, CTR_BY_RANK
from logeval.log.log import Log
from logeval.running.arrays import Floats, sum_by

EXPECTED = 10.0  # empty SERPs: there are none by chance in one log of 20,000
CLICKS_ALONE = (
    "every result was clicked: these are clicks alone, and nothing can be learned without the "
    "results that were shown and not clicked; get these, too"
)


def clicks_alone(data: FoldedClicks) -> bool:
    """Whether there is no result that was shown and not clicked."""
    return bool((data.item_clicks >= data.impressions).all())


def expected_empty(data: FoldedClicks | Log) -> float | None:
    """The share of empty SERPs that a log without any should have; None for other logs."""
    shown, clicked, serps, empty = _of_log(data) if isinstance(data, Log) else _of_clicks(data)
    share = float(np.prod(1.0 - clicked / np.maximum(shown, 1.0)))
    return share if empty == 0 and serps * share >= EXPECTED else None


def _of_clicks(data: FoldedClicks) -> tuple[Floats, Floats, float, float]:
    """Impressions and clicks by rank, SERPs, and those without a click."""

    def count(block: Patterns) -> tuple[Floats, ...]:
        shown, K = block.shown, data.K
        empty = block.count @ ~block.clicks.any(axis=1)
        return (
            sum_by(shown.position, shown.count, K),
            sum_by(shown.position, shown.count * shown.clicked, K),
            np.array([block.count.sum(), empty]),
        )

    shown, clicked, (serps, empty) = data.total(count)
    return shown, clicked, float(serps), float(empty)


def _of_log(log: Log) -> tuple[Floats, Floats, float, float]:
    with log.connect() as db:
        ranks, pages = db.execute(CTR_BY_RANK).df(), db.execute(CLICKS_PER_SERP).df()
    shown = ranks["serps"].to_numpy(dtype=np.float64)
    none = pages["serps"][pages["clicked"] == 0]
    return shown, shown * ranks["ctr"].to_numpy(), float(pages["serps"].sum()), float(none.sum())


def selected_by_clicks(data: FoldedClicks | Log) -> str | None:
    """What to say of a log that was selected by clicks; None for others."""
    share = expected_empty(data)
    if share is None:
        return None
    return (
        f"Every SERP has a click, where clicks as frequent as these would leave {share:.0%} or "
        "more without: the log was selected by clicks, which no model or estimator here knows of. "
        "To be relied on is which results of the same list are clicked more often. Clicks per "
        "search, the level of attraction, examination at the bottom of lists, and checks of models "
        "are not: get the searches without a click, too"
    )


def how_to_say(log: Log) -> str:
    """What a log must say, for lists in random order to be found; why propensities are not it."""
    with log.connect() as db:
        known = db.execute("SELECT count(*) FROM serps WHERE propensities IS NOT NULL").fetchone()
    more = ""
    if known is not None and known[0]:
        more = (
            "; its propensities are of single results, which do not say how likely a whole list "
            "was, so lists cannot be weighed by them. Mark those that were drawn in random order, "
            "or estimate with `replay estimate --propensities logged`"
        )
    return f"the log must say which lists were in random order, in a column `random`{more}"
