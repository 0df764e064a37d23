"""What the papers did and what they say, read from one TOML file per paper.

A file has ``[[experiment]]`` tables, each with ``[[experiment.part]]`` (users and policies: one
call of ``evaluate``; parts of one name share their runs) and ``[[experiment.claim]]``.

- ``{x}`` in a string is what ``[words]`` or ``each`` says of x; ``{x!n}`` has no parameters.
- ``each`` has lists: what has it is there once for every choice. A table in a list sets its keys,
  and those that a claim has (published, stderr, ...) are taken over.
- ``measure`` is a function of ``measures.py`` with its arguments. ``for`` (lists, as in ``each``)
  makes several cases of it: the claim holds when each of them does.
- ``published`` (with ``stderr``) is a number to be met, ``low`` and ``high`` bound what words may
  mean; ``factor`` has all three, and ``power`` = [b, k] is b^k, half a power more or less allowed.
- ``parts_of`` takes the parts of another experiment.

A cell, of which measures speak, is ``policy``, or ``policy @`` a part, a problem or ``Query 1``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from logeval.errors import unknown_names
from logeval.policies.registry import PolicySpec, parse_policies
from logeval.running.names import defaults_of, format_call

PAPERS = ("cascading", "dcm", "rank1", "gl_cdcm", "modern", "changing")
PAPER = "paper"
VARIABLE = re.compile(r"\{(\w+)(!n)?\}")

Words = Mapping[str, Any]
Measure = list[Any]  # a function of measures.py by name, and its arguments


@dataclass(frozen=True, kw_only=True)
class Part:
    """Policies on synthetic problems, or on a click model of the top queries of a log.

    ``fit`` are further arguments of ``fit_models``; with ``features`` (of ``make_features``) it is
    the contextual track.
    """

    name: str
    problems: tuple[str, ...] = ()
    model: str = ""
    top_queries: int = 0
    fit: Mapping[str, Any] = field(default_factory=dict)
    features: Mapping[str, Any] | None = None
    policies: tuple[str, ...] = ()  # none: only the models are of interest
    runs: int | None = None  # where it is not the experiment's

    @property
    def names(self) -> dict[str, str]:
        """The policies, and each as it is run: told to begin as those of the papers."""
        contextual = self.features or any(p.startswith("contextual(") for p in self.problems)
        specs = parse_policies(self.policies, track="contextual" if contextual else None)
        return dict(zip(self.policies, map(_as_published, specs), strict=True))


def _as_published(spec: PolicySpec) -> str:
    """The policy as the papers run it: its first look at every item is free."""
    if "init" not in defaults_of(spec.cls):
        return spec.name
    return format_call(spec.name.partition("(")[0], spec.parameters | {"init": "sample"})


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Something that a paper says, and how to measure it."""

    text: str
    place: str  # where it is said
    cases: tuple[Measure, ...]
    published: float | None = None
    stderr: float = 0.0  # the published one
    low: float | None = None
    high: float | None = None
    reason: str = ""  # what is known about a difference
    source: str = PAPER  # whoever else found the number: nobody published it
    judged: bool = True  # False: a number of another log, shown and not judged

    @property
    def is_number(self) -> bool:
        """Whether a number is to be met, not an interval."""
        return self.low is None and self.high is None

    @property
    def interval(self) -> tuple[float, float]:
        """What ours must lie in."""
        if self.is_number:
            assert self.published is not None
            return self.published, self.published
        low, high = self.low, self.high
        return float("-inf") if low is None else low, float("inf") if high is None else high

    @property
    def is_published(self) -> bool:
        """Whether it is of a paper, not of somebody's program."""
        return self.source == PAPER


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table or figure of a paper."""

    name: str  # dcm-3c
    paper: str
    place: str  # Figure 3c
    section: str = ""  # that tells of it
    about: str
    horizon: int
    runs: int
    seconds: float  # of one core, at full size
    parts: tuple[Part, ...]
    claims: tuple[Claim, ...]

    @property
    def needs_log(self) -> bool:
        return any(part.model for part in self.parts)

    def scaled(self, scale: float) -> tuple[int, int]:
        """Horizon and runs at a part of the cost: fewer runs, and from two runs on fewer steps."""
        runs = max(min(2, self.runs), round(self.runs * scale))
        shorter = min(1.0, scale * self.runs / runs)
        return max(1, round(self.horizon * shorter)), runs


@cache
def experiments() -> dict[str, Experiment]:
    """All of them by name, paper by paper."""
    return {one.name: one for paper in PAPERS for one in _of_paper(paper)}


def named(name: str) -> Experiment:
    if name not in experiments():
        raise unknown_names("experiment", [name], [*experiments(), "list", "all"])
    return experiments()[name]


def _of_paper(paper: str) -> Iterator[Experiment]:
    data = tomllib.loads((Path(__file__).parent / f"{paper}.toml").read_text("utf-8"))
    words = data.pop("words", {})
    tables = data.pop("experiment")
    parts = {table["name"]: table.get("part") for table in tables}
    for table in tables:
        table.setdefault("part", parts.get(table.pop("parts_of", "")))
        for own, _ in _each(table, words):
            yield _experiment({**data, **table}, own)


def _experiment(table: Words, words: Words) -> Experiment:
    rest = {k: v for k, v in table.items() if k not in ("each", "part", "claim")}
    filled = _filled(rest, words)
    parts = [_part(part, own) for part in table["part"] for own, _ in _each(part, words)]
    # by the steps a number that nobody published is known
    places = filled.get("section", ""), f"n = {filled['horizon']:,}"
    claims = [
        _claim({**{k: v for k, v in chosen.items() if k in TAKEN}, **claim}, own, places)
        for claim in table["claim"]
        for own, chosen in _each(claim, words)
    ]
    return Experiment(**filled, parts=tuple(parts), claims=tuple(claims))


def _part(table: Words, words: Words) -> Part:
    filled = _filled({k: v for k, v in table.items() if k not in ("each", "for")}, words)
    for lists in ("problems", "policies"):
        every = [_filled(table.get(lists, []), own) for own, _ in _each(table, words, "for")]
        filled[lists] = tuple(dict.fromkeys(one for some in every for one in some))
    return Part(**filled)


TAKEN = {"published", "stderr", "reason", "place"}
OWN = {"each", "for", "measure", "factor", "power", "relative_stderr"}


def _claim(table: Words, words: Words, places: tuple[str, str]) -> Claim:
    filled = _filled({k: v for k, v in table.items() if k not in OWN}, words)
    filled.setdefault("place", places[filled.get("source", PAPER) != PAPER])
    if "factor" in table:
        filled |= zip(("published", "low", "high"), table["factor"], strict=True)
    if "power" in table:
        base, k = _filled(table["power"], words)
        filled |= {"published": base**k, "low": base ** (k - 0.5), "high": base ** (k + 0.5)}
    if "relative_stderr" in table:
        filled["stderr"] = table["relative_stderr"] * filled["published"]
    cases = tuple(_filled(table["measure"], own) for own, _ in _each(table, words, "for"))
    return Claim(**filled, cases=cases)


def _each(table: Words, words: Words, key: str = "each") -> Iterator[tuple[Words, Words]]:
    """Every choice of the lists in ``each``: all words with it, and it alone."""
    choices = [
        [value if isinstance(value, dict) else {name: value} for value in values]
        for name, values in _filled(table.get(key, {}), words).items()
    ]
    for chosen in product(*choices):
        own = {k: v for one in chosen for k, v in one.items()}
        yield {**words, **own}, own


def _filled(value: Any, words: Words) -> Any:
    """A value with words in the place of variables; what has no word stays for later."""
    if isinstance(value, dict):
        return {_filled(k, words): _filled(v, words) for k, v in value.items()}
    if isinstance(value, list):
        return [_filled(v, words) for v in value]
    if not isinstance(value, str):
        return value
    whole = VARIABLE.fullmatch(value)
    if whole and whole[1] in words and not whole[2]:
        return _filled(words[whole[1]], words)
    return VARIABLE.sub(lambda found: _word(found, words), value)


def _word(found: re.Match[str], words: Words) -> str:
    if found[1] not in words:
        return found[0]
    text = str(_filled(words[found[1]], words))
    return text.partition("(")[0] if found[2] else text
