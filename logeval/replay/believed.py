"""Which estimator of a replay to believe, target by target.

Believed is DR with the click model that predicts held-out sessions best, where it was asked for
(``DR(auto)``). Else, or where it covers much less than others, it is the estimator that assumes
least of users, among those that cover (nearly) as much as any and rest on enough searches; of
several, the one with the narrowest interval.

Where two estimators differ by more than chance, and one is right wherever the other is, the other
one is refuted, for all targets. If neither assumes less, the answer depends on which users these
are; estimators that the best click model contradicts are out of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from logeval.replay.estimate import FEW, Estimates
from logeval.replay.estimators import OF_CELLS, Estimator, parse_estimators

RCTR = 4  # the strength of what does not look at the target
AS_MUCH = 0.8  # of the largest coverage counts as much


@dataclass(frozen=True)
class Judged:
    """One target: its rows over all queries, by estimator, and by query."""

    name: str
    overall: dict[str, dict[str, Any]]
    queries: dict[str, list[dict[str, Any]]]
    contradictions: list[dict[str, Any]]
    # of all targets: what an estimator that assumes less differs from, with where and which
    refuted: Mapping[str, dict[str, Any]]
    predicting: Mapping[str, float]  # log-likelihoods by click model, the best first
    unit: str = "search"  # that values are of, or placement

    @cached_property
    def estimators(self) -> dict[str, Estimator]:
        """The estimators by name."""
        return dict(zip(self.overall, parse_estimators(self.overall), strict=True))

    @property
    def best(self) -> str | None:
        """The click model that predicts held-out sessions best, where several were tried."""
        return next(iter(self.predicting), None)

    @cached_property
    def believed(self) -> str | None:
        """The estimator to believe; None where none says anything."""
        there = [e for e, row in self.overall.items() if row["value"] == row["value"]]
        there = [e for e in there if self.holds(e) and e not in self.refuted]
        enough = [e for e in there if self._is_of_best(e) or not self.rests_on_few(e)] or there
        if not enough:
            return None
        most = max(self.overall[e]["covered"] for e in enough)
        wide = [e for e in enough if self.overall[e]["covered"] >= AS_MUCH * most]
        return min(
            wide,
            key=lambda e: (
                not self._is_of_best(e), self.estimators[e].strength, width_of(self.overall[e])
            ),
        )  # fmt: skip

    def holds(self, name: str) -> bool:
        """Whether it looks at the target, and can be right of users of the best click model."""
        e = self.estimators[name]
        if e.strength >= RCTR:
            return False
        of_all = self.best is None or self.best.upper() in OF_CELLS or e.model == self.best
        return of_all or e.LEVEL in ("list", "prefix")

    def _is_of_best(self, name: str) -> bool:
        e = self.estimators[name]
        return e.NAME == "DR" and e.model == self.best

    def rests_on_few(self, name: str) -> bool:
        """Whether too few searches carry its weights."""
        return bool(self.overall[name]["effective_serps"] < FEW)

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
        return [
            e for e, _ in self.differing
            if self.estimators[e].strength <= most and self.holds(e) and e not in self.refuted
        ]  # fmt: skip

    @property
    def lacking(self) -> list[dict[str, Any]]:
        """The queries that the believed estimator does not cover, the most frequent first."""
        rows = self.queries[self.believed or next(iter(self.queries))]
        return sorted((r for r in rows if not r["covered"]), key=lambda r: -r["serps"])


def judged(estimates: Estimates) -> list[Judged]:
    """The targets, each with what is known of it."""
    found, refuted = [], refutations(estimates)
    unit = "placement" if estimates.manifest.get("holds") == "placements" else "search"
    for name, rows in estimates.table.groupby("target", sort=False):
        records = [{str(k): v for k, v in r.items()} for r in rows.to_dict(orient="records")]
        whole = {r["estimator"]: r for r in records if not isinstance(r["query"], str)}
        parts = {
            e: [r for r in records if isinstance(r["query"], str) and r["estimator"] == e]
            for e in whole
        }
        pairs = [c for c in estimates.contradictions or [] if c["target"] == name]
        best = estimates.predicting or {}
        found.append(Judged(str(name), whole, parts, pairs, refuted, best, unit))
    return found


def refutations(estimates: Estimates) -> dict[str, dict[str, Any]]:
    """The estimators that one which assumes less differs from, on any target."""
    found: dict[str, dict[str, Any]] = {}
    for pair in estimates.contradictions or []:
        both = (pair["first"], pair["second"])
        for e, other in (both, both[::-1]):
            first, second = parse_estimators([e, other])
            if second.assumes_less(first):
                found.setdefault(e, {"by": other, "target": pair["target"]})
    return found


def width_of(row: dict[str, Any]) -> float:
    """How wide the interval of the difference to the log is; infinite where there is none."""
    width = row["difference_high"] - row["difference_low"]
    return math.inf if width != width else float(width)
