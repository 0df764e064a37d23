"""What an experiment of a paper is, as data: its users, its policies, what the paper says of it.

A part is one call of ``evaluate``. Parts of two experiments that have one name share their runs, as
Figures 3a and 3b of dcm-bandits do. ``papers.runner`` runs experiments, ``verdicts`` judges
claims.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from logeval.policies.registry import PolicySpec, parse_policies
from logeval.running.names import defaults_of, format_call

if TYPE_CHECKING:
    from logeval.papers.shared.measures import Cases
    from logeval.papers.shared.outcome import Outcome

PAPER = "paper"


def as_published(spec: PolicySpec) -> str:
    """The policy as the papers run it: its first look at every item is free."""
    if "init" not in defaults_of(spec.cls):
        return spec.name
    return format_call(spec.name.partition("(")[0], spec.parameters | {"init": "sample"})


class Cell(NamedTuple):
    """A policy on a simulator of a part; the first part and its only simulator by default."""

    policy: str
    simulator: str | None = None
    part: str | None = None
    query: str | None = None


@dataclass(frozen=True)
class OnLog:
    """A click model fitted to the most frequent queries of a log.

    ``fit`` are further arguments of ``fit_models``; ``change`` is applied to the model of each
    query; with ``features`` (arguments of ``make_features``) it is the contextual track.
    """

    model: str
    top_queries: int
    fit: Mapping[str, Any] = field(default_factory=dict)
    change: Callable[[Any], Any] | None = None
    features: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Part:
    """Policies on some users; without policies only the models are of interest."""

    name: str
    users: tuple[str, ...] | OnLog  # synthetic problems by name, or models of a log
    policies: tuple[str, ...] = ()
    runs: int | None = None  # where it is not the experiment's
    title: str = ""

    @property
    def names(self) -> dict[str, str]:
        """The policies, and each as it is run: told to begin as those of the papers."""
        users = self.users
        features = (
            users.features if isinstance(users, OnLog) else users[0].startswith("contextual(")
        )
        specs = parse_policies(self.policies, track="contextual" if features else None)
        return dict(zip(self.policies, map(as_published, specs), strict=True))


@dataclass(frozen=True)
class Claim:
    """Something that a paper says, how to measure it, and the same measured otherwise.

    ``published`` alone is a number to be met; ``low`` and ``high`` are the bounds of what the words
    may mean ("three times": 2.5 to 3.5). ``measure`` is the paper's own method, and by name
    where the claim is made of several cases: it holds when it holds in each. ``variants`` (other
    fits, the authors' program) are shown below it and have no verdict. ``reason`` is what is known
    about a difference.
    """

    text: str
    measure: Cases
    published: float | None = None
    stderr: float = 0.0  # the published one
    low: float | None = None
    high: float | None = None
    reason: str = ""
    source: str = PAPER  # whoever else found the number: nobody published it
    place: str = ""  # where it is said; by default in the section of the experiment
    judged: bool = True  # False: a number of another log, shown and not judged
    variants: Mapping[str, Cases] = field(default_factory=dict)

    @property
    def interval(self) -> tuple[float, float]:
        """What ours must lie in."""
        if self.low is None and self.high is None:
            assert self.published is not None
            return self.published, self.published
        return (
            float("-inf") if self.low is None else self.low,
            float("inf") if self.high is None else self.high,
        )

    @property
    def is_number(self) -> bool:
        """Whether a number is to be met, not an interval."""
        return self.low is None and self.high is None

    @property
    def is_published(self) -> bool:
        """Whether it is of a paper, not of somebody's program."""
        return self.source == PAPER


def below(text: str, ratio: Cases, **more: Any) -> Claim:
    """A claim that something is less than something else: their ratio is at most 1."""
    return Claim(text, ratio, high=1.0, **more)


def above(text: str, ratio: Cases, **more: Any) -> Claim:
    """Likewise more."""
    return Claim(text, ratio, low=1.0, **more)


def factor(published: float, low: float, high: float) -> dict[str, Any]:
    """What a claim says of a factor: "three times", 2.5 to 3.5."""
    return {"published": published, "low": low, "high": high}


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper."""

    name: str  # dcm-3c
    place: str  # Figure 3c
    about: str
    parts: tuple[Part, ...]
    claims: tuple[Claim, ...]
    _: KW_ONLY
    paper: str
    horizon: int
    runs: int
    section: str = ""  # that tells of it
    seconds: float  # of one core, at full size
    figure: Callable[[Outcome], Any] | None = None
    facts: Callable[[Outcome], list[str]] | None = None  # what else was found, in sentences

    def __post_init__(self) -> None:
        steps = f"n = {self.horizon:,}"  # by which a number that nobody published is known
        claims = tuple(
            c if c.place else replace(c, place=self.section if c.is_published else steps)
            for c in self.claims
        )
        object.__setattr__(self, "claims", claims)

    @property
    def needs_log(self) -> bool:
        """Whether it needs a log."""
        return any(isinstance(part.users, OnLog) for part in self.parts)

    def scaled(self, scale: float) -> tuple[int, int]:
        """Horizon and runs at a part of the cost: fewer runs, and from two runs on fewer steps."""
        runs = max(min(2, self.runs), round(self.runs * scale))
        shorter = min(1.0, scale * self.runs / runs)
        return max(1, round(self.horizon * shorter)), runs
