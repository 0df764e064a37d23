"""The answer of ``decide``: TEST, KEEP or WAIT, and the numbers that it rests on.

Gains are shares of what today's ranker earns over the period, on the queries' own traffic. Nothing
here is a sentence: ``reports/answer.py`` makes the twelve lines, ``reports/words.py`` a sentence of
each fact.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow as pa

from logeval.facts import Fact
from logeval.storage import schemas, tables

Verdict = Literal["TEST", "KEEP", "WAIT"]
TODAY, BEST = "today's ranker", "best lists"  # the two curves that are no policies


@dataclass(frozen=True)
class Choice:
    """One policy in the place of today's ranker: a row of the answer's table."""

    policy: str
    reward: float  # over the whole period and all queries
    gain: float  # as a share of today's reward: 0.041
    gain_low: float
    gain_high: float
    worse: float  # probability of earning less than today
    pays_back: float | None  # day (or search) from which on it is ahead; None: not in the period
    pays_back_low: float | None
    pays_back_high: float | None
    worst_query: str
    worst_gain: float
    worst_low: float
    worst_high: float
    tied: bool  # cannot be told apart from the choice, which itself is


@dataclass(frozen=True)
class Simulator:
    """A click model that was fitted for this, and whether the answer rests on it."""

    name: str
    log_likelihood: float | None  # held out, per result
    checks: Mapping[str, bool | None]  # by name: passed, failed, or cannot be told (None)
    slope: float | None  # of the value check: what a predicted difference of lists is worth
    slope_low: float | None
    slope_high: float | None
    today: float | None  # clicks of a search of today's ranker: what its users would make
    today_log: float | None  # ... and what the log has
    used: bool
    why: str  # a code: best, less-likely, slope, today
    calibrated: bool  # whether its gains are taken times the slope


@dataclass(frozen=True)
class TestSize:
    """What a test of the choice against today's ranker takes."""

    __test__ = False  # for pytest

    design: str  # A/B test, or an interleaving
    metric: str
    effect: float  # per search
    searches: float | None  # None: no number is enough
    days: float | None  # at the log's traffic


@dataclass(frozen=True)
class Decision:
    """What to do, why, and the table behind it."""

    decision: Verdict
    reason: str  # a code
    policy: str | None  # the choice; None: there is none
    reward: str  # clicks, any-click or satisfaction
    days: float | None  # of the period; None: the log has no days
    searches: float  # of the period
    queries: int
    today: float  # reward of today's ranker over the period
    best: float  # and of the best lists
    all_gain: float | None = None  # of the choice, with results that the log hardly shows, too
    choices: Sequence[Choice] = ()  # the best first
    simulators: Sequence[Simulator] = ()
    facts: Sequence[Fact] = ()
    tests: Sequence[TestSize] = ()
    curves: pd.DataFrame = field(
        default_factory=lambda: empty("earnings"), repr=False, compare=False
    )
    by_query: pd.DataFrame = field(
        default_factory=lambda: empty("gains"), repr=False, compare=False
    )
    manifest: tables.Manifest = field(default_factory=dict, repr=False, compare=False)

    @property
    def unit(self) -> Literal["day", "search"]:
        """What ``pays_back`` and the column ``t`` of the curves count."""
        return "search" if self.days is None else "day"

    @property
    def length(self) -> float:
        """The period, in that unit."""
        return self.searches if self.days is None else self.days

    @property
    def choice(self) -> Choice | None:
        """The row of the policy that was chosen."""
        return next((one for one in self.choices if one.policy == self.policy), None)

    def fact(self, code: str) -> Fact | None:
        """The first fact of a code."""
        return next((fact for fact in self.facts if fact.code == code), None)

    def to_json(self) -> dict[str, Any]:
        """Everything but curves and queries, as JSON has it."""
        plain = ("decision", "reason", "policy", "reward", "days", "searches", "queries", "today",
                 "best", "all_gain")  # fmt: skip
        return {
            **{name: _finite(getattr(self, name)) for name in plain},
            "unit": self.unit,
            "choices": [_record(one) for one in self.choices],
            "simulators": [_record(one) for one in self.simulators],
            "tests": [_record(one) for one in self.tests],
            "facts": [fact.record() for fact in self.facts],
        }

    @classmethod
    def of(cls, found: Mapping[str, Any], **frames: Any) -> Decision:
        """The decision of what ``to_json`` gave."""
        given = {name: value for name, value in found.items() if name != "unit"}
        for name, kind in (("choices", Choice), ("simulators", Simulator), ("tests", TestSize)):
            given[name] = tuple(kind(**row) for row in given[name])
        given["facts"] = tuple(Fact.of(row) for row in given["facts"])
        return cls(**given, **frames)

    def write(self, out: Path | str, overwrite: bool | None = None) -> None:
        """Write the folder."""
        with tables.staged(out, overwrite) as folder:
            for name, frame in (("earnings", self.curves), ("gains", self.by_query)):
                rows = pa.Table.from_pandas(frame, schemas.TABLES[name], preserve_index=False)
                tables.write_parquet(rows, folder / f"{name}.parquet")
            made = self.manifest or tables.manifest_of("decide", {}, [])
            tables.write_manifest(folder, {**made, "answer": self.to_json()})

    @classmethod
    def read(cls, folder: Path | str) -> Decision:
        """The decision that a folder holds."""

        def of(manifest: tables.Manifest) -> Decision:
            curves, gains = (
                tables.table_of(folder, manifest, name).to_pandas()
                for name in ("earnings", "gains")
            )
            found = cls.of(manifest["answer"], curves=curves, by_query=gains)
            object.__setattr__(found, "manifest", manifest)
            return found

        return tables.consistent(folder, of)

    def table(self) -> pd.DataFrame:
        """A row per policy."""
        return pd.DataFrame([asdict(one) for one in self.choices])

    def text(self) -> str:
        """The answer for a person, in twelve lines."""
        from logeval.reports.answer import text

        return text(self)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text())}</pre>"


def _record(one: Any) -> dict[str, Any]:
    return {name: _finite(value) for name, value in asdict(one).items()}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def empty(name: str) -> pd.DataFrame:
    """A table without rows."""
    found: pd.DataFrame = schemas.TABLES[name].empty_table().to_pandas()
    return found
