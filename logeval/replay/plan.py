"""What is asked of ``replay estimate``, checked as far as that can be done without the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from logeval.clicks.fitted import SCOPES
from logeval.errors import LogevalError, unknown_names
from logeval.log.log import Log
from logeval.log.queries import Query
from logeval.replay.estimators.estimator import Estimator
from logeval.replay.estimators.registry import DEFAULT, parse_estimators
from logeval.replay.read_target import check_target
from logeval.storage import tables

MIN_SUPPORT = 0.8
PROPENSITIES = ("estimated", "logged")
MOST_ROUNDS = 1_000_000
MOST_SMOOTHING = 1_000_000_000
MOST_PARTS = 1000  # each fits the click models anew


@dataclass(frozen=True)
class EstimatePlan:
    """The arguments of ``replay_estimate``."""

    targets: list[str]
    estimators: list[Estimator]
    positions: int | None
    clip: float | None
    smoothing: float
    cross_fit: int
    propensities: str
    scope: str
    queries: list[Query] | None
    top_queries: int | None
    rounds: int
    refits: int
    min_support: float
    force: bool
    seed: int

    @classmethod
    def of(
        cls,
        target: str | Path | Sequence[str | Path],
        *,
        estimators: str | Iterable[str] = DEFAULT,
        positions: int | None = None,
        clip: float | None = None,
        smoothing: float = 0.0,
        cross_fit: int = 1,
        propensities: str = "estimated",
        scope: str = "per-query",
        queries: Iterable[Query | str] | None = None,
        top_queries: int | None = None,
        rounds: int = 1000,
        refits: int = 20,
        min_support: float = MIN_SUPPORT,
        force: bool = False,
        seed: int = 0,
    ) -> EstimatePlan:
        """A plan from what users give, with its names and numbers checked."""
        names = [str(t) for t in ([target] if isinstance(target, str | Path) else target)]
        chosen = parse_estimators([estimators] if isinstance(estimators, str) else estimators)
        wanted = None
        if queries is not None:
            wanted = [Query.parse(q) if isinstance(q, str) else q for q in queries]
        plan = cls(
            names, chosen, positions, clip, smoothing, cross_fit,
            propensities, scope, wanted, top_queries, rounds, refits, min_support, force, seed,
        )  # fmt: skip
        plan._check()
        return plan

    def _check(self) -> None:
        if not self.targets:
            raise LogevalError("there is no target; name one, as by-ctr")
        if not self.estimators:
            raise LogevalError("there is no estimator; name one, as IP")
        if len(set(self.targets)) < len(self.targets):
            raise LogevalError("a target is given twice")
        if self.positions is not None and self.positions < 1:
            raise LogevalError(f"positions={self.positions}: there must be at least one")
        if self.clip is not None:
            check_clip(self.clip)
        check_smoothing(self.smoothing)
        if not 0.0 <= self.min_support <= 1.0:
            raise LogevalError(f"min_support={self.min_support}: it is a share, from 0 to 1")
        if not 1 <= self.cross_fit <= MOST_PARTS:
            raise LogevalError(
                f"cross_fit={self.cross_fit}: it is a number of parts, from 1 to {MOST_PARTS:,}"
            )
        if min(self.rounds, self.refits) < 0 or 1 in (self.rounds, self.refits):
            raise LogevalError("rounds and refits must be 0 (no interval) or at least 2")
        if max(self.rounds, self.refits) > MOST_ROUNDS:
            raise LogevalError(f"rounds and refits are at most {MOST_ROUNDS:,}")
        if self.propensities not in PROPENSITIES:
            raise unknown_names("kind of propensities", [self.propensities], PROPENSITIES)
        if self.scope not in SCOPES:
            raise unknown_names("scope", [self.scope], SCOPES)
        if self.propensities == "logged":
            wrong = [e for e in self.estimators if e.NAME not in ("IP", "DR", "DM", "RCTR")]
            if wrong:
                raise LogevalError(
                    f"propensities=logged: they are those of an item at a position, and "
                    f"{wrong[0]} weights something else; use IP or DR"
                )
            if self.smoothing:
                raise LogevalError("propensities=logged: there is nothing to smooth")
        for name in self.targets:
            check_target(name)

    def manifest(self, log: Log) -> tables.Manifest:
        """The manifest of the estimates that this plan makes from a log."""
        arguments = {
            **vars(self),
            "estimators": [str(e) for e in self.estimators],
            "queries": None if self.queries is None else [str(q) for q in self.queries],
        }
        inputs = [{"log": log.identity}, *(_input(name) for name in self.targets)]
        return tables.manifest_of("replay", arguments, inputs)


def check_clip(clip: float) -> None:
    """Refuse what is no largest weight; infinity is none."""
    if not clip > 0:
        raise LogevalError(f"clip={clip}: the largest weight must be above 0")


def check_smoothing(smoothing: float) -> None:
    """Refuse what is no number of SERPs, or so large that the log would not count beside it."""
    if not 0 <= smoothing <= MOST_SMOOTHING:
        raise LogevalError(
            f"smoothing={smoothing}: it must be 0 to {MOST_SMOOTHING:,} SERPs per cell"
        )


def _input(name: str) -> dict[str, str]:
    kind, _, rest = name.partition(":")
    if kind == "log":
        return {name: tables.identity(rest)}
    return {name: tables.checksum(Path(name)) if Path(name).is_file() else ""}
