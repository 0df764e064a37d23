"""Which estimator of a replay to believe, target by target.

Believed is the estimator that assumes least of users, among those that cover (nearly) as much as
any and rest on enough searches; of several, the one with the narrowest interval. Where another that
assumes no more differs from it by more than chance, the answer depends on which users these are.
One that assumes more, and differs, is wrong here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from logeval.replay.estimates import Estimates
from logeval.replay.estimators.estimator import Estimator
from logeval.replay.estimators.registry import parse_estimators
from logeval.replay.values.estimate import FEW

RCTR = 4  # the strength of what does not look at the target
AS_MUCH = 0.8  # of the largest coverage counts as much


@dataclass(frozen=True)
class Judged:
    """One target: its rows over all queries, by estimator, and by query."""

    name: str
    overall: dict[str, dict[str, Any]]
    queries: dict[str, list[dict[str, Any]]]
    contradictions: list[dict[str, Any]]

    @cached_property
    def estimators(self) -> dict[str, Estimator]:
        """The estimators by name."""
        return dict(zip(self.overall, parse_estimators(self.overall), strict=True))

    @cached_property
    def believed(self) -> str | None:
        """The estimator to believe; None where none says anything."""
        looks = {e: row for e, row in self.overall.items() if self.estimators[e].strength < RCTR}
        there = [e for e, row in looks.items() if row["value"] == row["value"]]
        enough = [e for e in there if not looks[e]["effective_serps"] < FEW] or there
        if not enough:
            return None
        most = max(looks[e]["covered"] for e in enough)
        wide = [e for e in enough if looks[e]["covered"] >= AS_MUCH * most]
        return min(wide, key=lambda e: (self.estimators[e].strength, width_of(looks[e])))

    @property
    def row(self) -> dict[str, Any]:
        """The row of the estimator to believe."""
        assert self.believed is not None
        return self.overall[self.believed]

    @property
    def K(self) -> int:
        """Positions."""
        return int(next(iter(self.overall.values()))["positions"])

    @cached_property
    def differing(self) -> list[tuple[str, dict[str, Any]]]:
        """The estimators that differ from the believed one by more than chance, with how much."""
        found = []
        for pair in self.contradictions:
            both = (pair["first"], pair["second"])
            if self.believed in both:
                found.append((both[both[0] == self.believed], pair))
        return found

    @property
    def rivals(self) -> list[str]:
        """Those among them that assume no more: it depends on the users which is right."""
        assert self.believed is not None
        most = self.estimators[self.believed].strength
        return [e for e, _ in self.differing if self.estimators[e].strength <= most]

    @property
    def lacking(self) -> list[dict[str, Any]]:
        """The queries that the believed estimator does not cover, the most frequent first."""
        rows = self.queries[self.believed or next(iter(self.queries))]
        return sorted((r for r in rows if not r["covered"]), key=lambda r: -r["serps"])


def judged(estimates: Estimates) -> list[Judged]:
    """The targets, each with what is known of it."""
    found = []
    for name, rows in estimates.table.groupby("target", sort=False):
        records = [{str(k): v for k, v in r.items()} for r in rows.to_dict(orient="records")]
        whole = {r["estimator"]: r for r in records if not isinstance(r["query"], str)}
        parts = {
            e: [r for r in records if isinstance(r["query"], str) and r["estimator"] == e]
            for e in whole
        }
        pairs = [c for c in estimates.contradictions or [] if c["target"] == name]
        found.append(Judged(str(name), whole, parts, pairs))
    return found


def width_of(row: dict[str, Any]) -> float:
    """How wide the interval of the difference to the log is; infinite where there is none."""
    width = row["difference_high"] - row["difference_low"]
    return math.inf if width != width else float(width)
