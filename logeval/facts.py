"""What a stage finds out, as records: everything that decides, tests and JSON read these.

A person reads sentences, which ``reports/words.py`` makes: one template for each code. No logic
reads English, and no sentence is stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from typing import Any, Literal

Level = Literal["fine", "caution", "stop"]
ORDER: tuple[Level, ...] = ("stop", "caution", "fine")  # as they are listed: the worst first


@dataclass(frozen=True)
class Fact:
    """One finding: what it is about, its value with a 95% interval, and what it is held against.

    ``caution``: the answer holds, with this in mind. ``stop``: nothing can be decided before this
    is mended. ``more`` holds what else a sentence names, plain values that JSON can hold.
    """

    code: str  # with words and dashes, as simulator-value
    about: str = ""  # a simulator, policy, query or estimator
    level: Level = "fine"
    value: float | None = None
    low: float | None = None
    high: float | None = None
    threshold: float | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """As JSON has it: without what is not there, and numbers that are none as null."""
        found = {name: _plain(value) for name, value in asdict(self).items()}
        return {name: value for name, value in found.items() if value not in (None, "", {})}

    def renamed(self, about: str) -> Fact:
        """The same about something by another name."""
        return replace(self, about=about)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Fact:
        """The fact of a record that JSON held."""
        return cls(**record)


def worst_first(facts: Iterable[Fact]) -> list[Fact]:
    """Stops, then cautions, then what is fine; each in the order given."""
    return sorted(facts, key=lambda fact: ORDER.index(fact.level))


def distinct(facts: Iterable[Fact]) -> list[Fact]:
    """Each fact once, in the order given."""
    found: list[Fact] = []
    for fact in facts:
        if fact not in found:
            found.append(fact)
    return found


@dataclass(frozen=True)
class Answer:
    """What a result says: its conclusion, and what this rests on or is limited by.

    ``notes`` say what was left out of it, as sentences; nothing is decided by them.
    """

    conclusion: Sequence[Fact]
    facts: Sequence[Fact] = ()
    notes: Sequence[str] = ()

    @property
    def every(self) -> list[Fact]:
        """The conclusion, then the worst first."""
        return [*self.conclusion, *worst_first(self.facts)]

    def fact(self, code: str) -> Fact | None:
        """The first fact of a code."""
        return next((fact for fact in self.every if fact.code == code), None)

    def records(self) -> list[dict[str, Any]]:
        """All facts, as JSON has them."""
        return [fact.record() for fact in self.every]

    def text(self) -> str:
        """For a person: the conclusion, and what to have in mind."""
        from logeval.reports.words import filled, paragraphs

        return "\n".join(map(filled, paragraphs(self)))

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        from logeval.reports.words import paragraphs

        return "".join(f"<p>{escape(line)}</p>" for line in paragraphs(self))


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
