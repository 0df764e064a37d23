"""The checks of a model in words: where it can be relied on, and where not.

"DCM: too few SERPs with 4+ clicks (.021 in simulation, .042 in the log); right: first clicks, ..."
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from logeval.clicks.quality.checks.deviations import Deviations
from logeval.clicks.quality.checks.features import CHECKS, MOST_CLICKS

RIGHT = {
    "clicks-per-serp": "number of clicks",
    "ctr-by-rank": "CTR by rank",
    "first-click": "first clicks",
    "last-click": "last clicks",
    "distance": "distance between clicks",
    "after-click": "CTR after a click",
    "top-items": "CTR of the items shown most",
    "calibration": "calibration",
}


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
    )


def words(check: str, found: Deviations, critical: float) -> str:
    """What is wrong with a faulted check: its clearest deviation, with those beside it."""
    z = found.z[0]
    mine = np.flatnonzero(found.of(check))
    worst = int(mine[np.abs(z[mine]).argmax()])
    sign = np.sign(z[worst])
    run = [worst]
    if check != "after-click":  # its components are not in one row
        while run[0] - 1 in mine and sign * z[run[0] - 1] >= critical:
            run.insert(0, run[0] - 1)
        while run[-1] + 1 in mine and sign * z[run[-1] + 1] >= critical:
            run.append(run[-1] + 1)
    few = sign > 0  # the log has more than the model
    first, last = found.parts.label[run[0]], found.parts.label[run[-1]]
    simulated, log = found.expected[worst], found.observed[worst]
    numbers = f"{_share(simulated)} in simulation, {_share(log)} in the log"
    if len(run) > 1:
        numbers = f"{found.parts.label[worst]}: {numbers}"
    if check == "clicks-per-serp":
        return f"too {_few(few)} SERPs with {_clicks(first, last)} ({numbers})"
    if check == "ctr-by-rank":
        return f"CTR too {_low(few)} at {_ranks(first, last)} ({numbers})"
    if check in ("first-click", "last-click"):
        which = check.removesuffix("-click")
        return f"too {_few(few)} {which} clicks at {_ranks(first, last)} ({numbers})"
    if check == "distance":
        span = _ranks(first, last, "distance")
        return f"too {_few(few)} clicks follow at {span} ({numbers})"
    if check == "after-click":
        rank, earlier = first.removeprefix("rank ").split(" after ")
        sure = np.abs(z[mine]) >= critical
        wrong = f"; {int(sure.sum())} of {len(mine)} pairs of ranks off" if sure.sum() > 1 else ""
        return f"CTR at rank {rank} after a click at {earlier} too {_low(few)} ({numbers}{wrong})"
    if check == "top-items":
        count = int((np.abs(z[mine]) >= critical).sum())
        return (
            f"CTR of {count} of {len(mine)} items shown most off ({found.parts.label[worst]}: "
            f"{_share(simulated)} in simulation, {_share(log)} in the log)"
        )
    return (
        f"click probabilities of {first.split(' to ')[0]} to {last.split(' to ')[1]} too "
        f"{_low(few)} ({numbers})"
    )


def _few(few: bool) -> str:
    return "few" if few else "many"


def _low(low: bool) -> str:
    return "low" if low else "high"


def _clicks(first: str, last: str) -> str:
    if first == last:
        return first
    low = first.split(" ")[0]
    if last.startswith(f"{MOST_CLICKS}+"):
        return f"{low}+ clicks"
    return f"{low} to {last}"


def _ranks(first: str, last: str, word: str = "rank") -> str:
    low, high = first.removeprefix(f"{word} "), last.removeprefix(f"{word} ")
    return f"{word} {low}" if low == high else f"{word}s {low} to {high}"


def _share(x: float) -> str:
    return f"{x:.3f}".replace("0.", ".", 1)
