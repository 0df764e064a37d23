"""Policies against today's ranker, in words: when they pass it, and what a search brings then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from logeval.evaluation.results import Runs
from logeval.reports.details import of_panel
from logeval.reports.limits import begin_free
from logeval.reports.trust import unfaulted
from logeval.running.words import UNITS, joined, number, searches
from logeval.tracks.keys import Panel

PASSES, OF_A_QUERY = "passes today's ranker ", " searches of a query"
AHEAD = "is ahead of today's ranker from the first search"
CLAUSES = 3  # simulators that have a clause of their own in a sentence
UNCHECKED: dict[str, Any] = {"checks": None}
Rows = dict[Panel, Any]  # of ``Runs.against_ranker``, by simulator


class Favourite(NamedTuple):
    """The policy to decide about, if there is one, and its rows where today's ranker is known."""

    policy: str | None
    rows: Rows


def against_ranker(runs: Runs, tables: Mapping[Panel, pd.DataFrame]) -> list[str]:
    """When the best policy passes today's ranker, what that costs, and what it brings.

    Of many simulators, those that no check faults have clauses of their own.
    """
    best = {p: str(table["policy"].iloc[0]) for p, table in tables.items() if len(table)}
    rows = rows_of(runs, best)
    if not rows:
        return []
    if len(rows) <= CLAUSES:
        return _clauses(runs, rows, several=len(tables) > 1)
    fine = believed(runs, rows)
    if not 0 < len(fine) <= CLAUSES:
        return [f"{_in_short(rows, runs.horizon)}{_unsure(rows)}.", *_looks(rows)]
    passes, *more = _clauses(runs, fine, several=True)
    passes = passes.replace("The best", "the best", 1)
    return [
        f"{_in_short(rows, runs.horizon)}.",
        f"Where no check faults the simulator, {passes}",
        *more,
    ]


def rows_of(runs: Runs, policies: Mapping[Panel, str]) -> Rows:
    """The rows of these policies whose ranker is known."""
    table = runs.against_ranker()
    found = {}
    for panel, policy in policies.items() if len(table) else ():
        mine = of_panel(table, panel)
        row: Any = next(mine[mine["policy"] == policy].itertuples(), None)
        if row is not None and row.break_even == row.break_even:
            found[panel] = row
    return found


def believed(runs: Runs, rows: Rows) -> Rows:
    """Those of simulators that no check faults."""
    sound = unfaulted(runs)
    return {p: row for p, row in rows.items() if p.simulator in sound}


def _who(rows: Rows) -> str:
    policies = {row.policy for row in rows.values()}
    return policies.pop() if len(policies) == 1 else "The best policy of each simulator"


def _clauses(runs: Runs, rows: Rows, several: bool) -> list[str]:
    """A clause for each simulator."""
    on = {panel: f" on {panel.simulator}" if several else "" for panel in rows}
    texts = [break_even_text(row, runs.horizon, on[p]) for p, row in rows.items()]
    passes = joined([texts[0], *map(_again, texts, texts[1:])])
    brings = joined(
        [
            f"{number(row.reward)} {UNITS[row.unit]}{on[p]} (today's {number(row.ranker)}, the "
            f"best list {number(row.best)})"
            for p, row in rows.items()
        ]
    )
    return [f"{_who(rows)} {passes}.", *_looks(rows), f"At the end a search brings {brings}."]


def _looks(rows: Rows) -> list[str]:
    """Why traffic would break even later than these rows say."""
    free = begin_free(row.policy for row in rows.values() if np.isfinite(row.break_even))
    said = "This does not count a first look at every item, which is free here."
    return [said] if free else []


def _again(before: str, text: str) -> str:
    """A clause without the words that the one before it has just said."""
    said, on, rest = text.partition(" on ")
    if on and before.startswith(f"{said}{on}"):
        return f"on {rest}"
    if before.startswith(PASSES) and text.startswith(PASSES):
        return text.removeprefix(PASSES).replace(OF_A_QUERY, "", 1)
    return text


def ends_of(row: Any) -> tuple[float, float]:
    """The ends of the break-even's 95% interval; itself where it has none.

    In between it is not named: that of the mean gain comes too early (docs/error-rates.md).
    """
    known = row.break_even_low == row.break_even_low
    return (row.break_even_low, row.break_even_high) if known else (row.break_even,) * 2


def break_even_text(row: Any, horizon: int, on: str = "") -> str:
    """When the total reward passes today's ranker's, and the cost, in words."""
    low, high = ends_of(row)
    about = ["95% interval"] if low < high else []
    if np.isinf(low):
        text = f"does not pass today's ranker within {horizon:,} searches of a query"
    elif high == 0:
        text = AHEAD
    else:
        text = f"{PASSES}after {_span(low, high, horizon)}{OF_A_QUERY}"
    if row.cost > 0 and high > 0:
        about.append(f"up to {number(row.cost)} {UNITS[row.unit]} behind before")
    return f"{text}{on} ({'; '.join(about)})" if about else f"{text}{on}"


def _span(low: float, high: float, horizon: int) -> str:
    """``380 to beyond 2,000``."""
    return " to ".join(dict.fromkeys([searches(low), searches(high, f"beyond {horizon:,}")]))


def _in_short(rows: Rows, horizon: int) -> str:
    """Many simulators in one sentence."""
    ahead = [row for row in rows.values() if np.isfinite(row.break_even)]
    text = f"{_who(rows)} passes today's ranker on {len(ahead)} of {len(rows)} simulators"
    later = [ends for ends in map(ends_of, ahead) if ends[1] > 0]
    if later:
        at_once = len(ahead) - len(later)
        span = _span(min(low for low, _ in later), max(high for _, high in later), horizon)
        first = f", on {at_once} from the first search, on the others" if at_once else ","
        text += f"{first} after {span}{OF_A_QUERY}"
    elif ahead:
        text += ", from the first search"
    return text


def _unsure(rows: Rows) -> str:
    """On how many of the simulators that it passes the ranker on it may as well not."""
    ahead = [row for row in rows.values() if np.isfinite(row.break_even)]
    many = sum(not np.isfinite(row.break_even_high) for row in ahead)
    said = f"; on {many} of these the 95% interval does not exclude that it never does"
    return said if many else ""
