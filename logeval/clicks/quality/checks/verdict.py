"""The checks of a model in words: where it can be relied on, and where not.

"DCM: too few SERPs with 4+ clicks (.021 in simulation, .042 in the log); right: first clicks, ..."
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from logeval.clicks.drift.change import Change
from logeval.clicks.quality.checks.deviations import Deviations
from logeval.clicks.quality.checks.features import CHECKS, MOST_CLICKS
from logeval.log.names import shortened

RIGHT = {
    "clicks-per-serp": "number of clicks",
    "ctr-by-rank": "CTR by rank",
    "first-click": "first clicks",
    "last-click": "last clicks",
    "distance": "distance between clicks",
    "after-click": "CTR after a click",
    "top-items": "CTR of the items shown most",
    "swaps": "examination by swaps",
    "calibration": "calibration",
    "drift": "CTR of items by day",
}
WRONG = {
    "clicks-per-serp": "too {few} SERPs with {span} ({numbers})",
    "ctr-by-rank": "CTR too {low} at {span} ({numbers})",
    "first-click": "too {few} first clicks at {span} ({numbers})",
    "last-click": "too {few} last clicks at {span} ({numbers})",
    "distance": "too {few} clicks at {span}, in ranks, from the click before ({numbers})",
    "after-click": "CTR at {span} too {low} ({numbers}{others})",
    "top-items": "CTR of {sure} of {judged} items shown most off ({numbers})",
    "swaps": "too {few} clicks at the upper of {span}, on items seen at both ({numbers})",
    "calibration": "click probabilities of {span} too {low} ({numbers})",
}

USERS_CHANGE = "users of the log change from day to day, and those of the model do not"


@dataclass(frozen=True)
class ModelVerdict:
    """What is wrong, what is right, and one line that says both."""

    model: str
    faults: list[str]  # in words, the clearest first
    faulted: list[str]  # checks over all queries
    right: list[str]
    unjudged: list[str]  # checks with too few events
    queries: int  # checked by themselves
    faulted_queries: int
    serps: int
    errors: dict[str, float] = field(default_factory=dict)  # by check that was judged

    def with_change(self, change: Change | None) -> ModelVerdict:
        """The same of users who may change, where the log knows of several days."""
        if change is None:
            return self
        if not change.tested[0]:
            return replace(self, unjudged=[*self.unjudged, "drift"])
        if not change.found[0]:
            return replace(self, right=[*self.right, "drift"])
        return replace(self, faulted=[*self.faulted, "drift"], faults=[*self.faults, USERS_CHANGE])

    @property
    def cleared(self) -> bool:
        """Whether nothing at all is faulted."""
        return not self.faulted and not self.faulted_queries

    def record(self, held_out: bool) -> dict[str, Any]:
        """What the manifest of the models keeps of it."""
        return {
            "faulted": self.faulted,
            "faults": self.faults,
            "judged": len(self.faulted) + len(self.right),
            "errors": {check: round(error, 6) for check, error in self.errors.items()},
            "queries": self.queries,
            "faulted_queries": self.faulted_queries,
            "serps": self.serps,
            "held_out": held_out,
            "line": self.line,
        }

    @property
    def line(self) -> str:
        """The verdict in one line."""
        parts = list(self.faults)
        if not parts:
            parts.append("no check over all queries faults it")
        if self.right and self.faults:
            parts.append("right: " + ", ".join(RIGHT[check] for check in self.right))
        if self.unjudged:
            parts.append("too few clicks to judge " + ", ".join(RIGHT[c] for c in self.unjudged))
        if self.faulted_queries:
            parts.append(f"faulted by itself in {self.faulted_queries} of {self.queries} queries")
        return f"{self.model}: " + "; ".join(parts) + f" ({self.serps:,} SERPs)"


def verdict_of(
    model: str, rows: list[dict[str, Any]], overall: Deviations, critical: float
) -> ModelVerdict:
    """The verdict on a model from the rows of its checks."""
    over_all = {row["check"]: row for row in rows if row["query"] is None}
    faulted = [check for check, row in over_all.items() if row["faulted"]]
    faulted.sort(key=lambda check: -overall.largest(check)[0])
    by_query: dict[str, bool] = {}
    for row in rows:
        if row["query"] is not None:
            by_query[row["query"]] = by_query.get(row["query"], False) or row["faulted"]
    judged = [check for check, row in over_all.items() if row["components"]]
    return ModelVerdict(
        model,
        [words(check, overall, critical) for check in faulted],
        faulted,
        [check for check in judged if check not in faulted],
        [check for check in CHECKS if check not in judged],
        len(by_query),
        sum(by_query.values()),
        int(next(iter(over_all.values()))["serps"]),
        {check: float(over_all[check]["error"]) for check in judged},
    )


def words(check: str, found: Deviations, critical: float) -> str:
    """What is wrong with a faulted check: its clearest deviation, with those beside it."""
    z = found.z[0]
    mine = np.flatnonzero(found.of(check))
    worst = int(mine[np.abs(z[mine]).argmax()])
    sign = np.sign(z[worst])
    run = [worst]
    if check not in ("after-click", "swaps"):  # whose components are not in one row
        while run[0] - 1 in mine and sign * z[run[0] - 1] >= critical:
            run.insert(0, run[0] - 1)
        while run[-1] + 1 in mine and sign * z[run[-1] + 1] >= critical:
            run.append(run[-1] + 1)
    label = [shortened(one) for one in found.parts.label]
    sure = int((np.abs(z[mine]) >= critical).sum())
    simulated, log = _share(found.expected[worst]), _share(found.observed[worst])
    numbers = f"{simulated} in simulation, {log} in the log"
    one = len(run) == 1 and check != "top-items"
    return WRONG[check].format(
        few="few" if sign > 0 else "many",  # few: the log has more than the model
        low="low" if sign > 0 else "high",
        span=_span(label[run[0]], label[run[-1]]),
        numbers=numbers if one else f"{label[worst]}: {numbers}",
        sure=sure,
        judged=len(mine),
        others=f"; {sure} of {len(mine)} pairs of ranks off" if sure > 1 else "",
    )


def _span(first: str, last: str) -> str:
    """Components from one to another: "ranks 2 to 4", "3+ clicks", "0.1 to 0.3"."""
    if first == last:
        return first.replace(" after ", " after a click at ")
    if " to " in first:
        return f"{first.split(' to ')[0]} to {last.split(' to ')[1]}"
    if "click" in first:
        low = first.split(" ")[0]
        return f"{low}+ clicks" if last.startswith(f"{MOST_CLICKS}+") else f"{low} to {last}"
    word, low = first.split(" ")
    return f"{word}s {low} to {last.split(' ')[1]}"


def _share(x: float) -> str:
    return f"{x:.3f}".replace("0.", ".", 1)
