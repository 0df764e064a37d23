"""Which simulator to decide with, and what its predicted differences are worth.

A model that does not earn for today's ranker what the log says is out. Of the others those that
pass the value check come first, then those that it cannot judge, and of these the one that predicts
held-out SERPs best is taken. The slope of that check, b, is what a predicted difference between
lists is worth. What is known of it before a log is looked at, ``PRIOR``, and the log's own estimate
are put together as two normal estimates; where the log cannot tell, the first is all there is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from logeval.clicks.collection import FittedModels
from logeval.clicks.fitted import FittedModel
from logeval.clicks.quality.value import Slope
from logeval.decision.decision import Simulator
from logeval.decision.world import Shown, Traffic, earns
from logeval.log.queries import Query
from logeval.running import seeds
from logeval.running.arrays import Floats

PRIOR = (0.5, 0.3)  # mean and standard deviation of the slope of whole lists, on real logs
OFF = 0.05  # today's ranker by a simulator and by the log: a larger difference is too large
Z, SURE = 1.96, 3.0
LEVEL_OF = {"clicks": "list", "any-click": "any-click", "satisfaction": "list"}


class Worth(NamedTuple):
    """The slope of a simulator, as a normal estimate."""

    mean: float
    error: float

    @classmethod
    def of(cls, slope: Any) -> Worth:
        """Of the value check and what was known before."""
        prior, error = PRIOR
        if slope is None or not math.isfinite(slope.high - slope.low):
            return cls(prior, error)
        own = (slope.high - slope.low) / (2.0 * Z)
        weight = error**2 / (error**2 + own**2)
        return cls(weight * slope.slope + (1.0 - weight) * prior, math.sqrt(weight) * own)

    def draws(self, D: int, seed: int) -> Floats:
        """D slopes, evenly spread over its distribution, in random order."""
        even = self.mean + self.error * ndtri((np.arange(D) + 0.5) / D)
        return seeds.generator(seed, "decide", "slope").permutation(even)


class Today(NamedTuple):
    """Clicks of a search of today's ranker, by a simulator and by the log."""

    simulated: float
    logged: float
    error: float

    @property
    def off(self) -> bool:
        """Whether they differ by more than chance, and by more than a little."""
        apart = abs(self.simulated - self.logged)
        return apart > max(SURE * self.error, OFF * self.logged)


def today_by(
    one: FittedModel, queries: Sequence[Query], shown: Sequence[Shown], n: Floats
) -> Today:
    """Of one simulator, at its fitted values."""
    share = n / n.sum()
    simulated = share @ [earns(one.of(q), s, "clicks") for q, s in zip(queries, shown, strict=True)]
    logged = share @ [s.ranker.clicks for s in shown]
    error = np.sqrt(np.sum((share * np.nan_to_num([s.ranker.error for s in shown])) ** 2))
    return Today(float(simulated), float(logged), float(error))


def judged(
    models: FittedModels,
    slopes: Mapping[str, Sequence[Slope]],
    traffic: Traffic,
    shown: Sequence[Shown],
    reward: str,
) -> list[Simulator]:
    """Every model with what is known of it; one of them is used, unless none can be."""
    found = []
    for name, one in models.fitted.items():
        slope = level_of(slopes.get(name, ()), reward)
        today = today_by(one, traffic.queries, shown, traffic.searches)
        checks = checks_of(one)
        if slope is not None:
            checks["value"] = slope.passes
        can = reward in one.of(one.queries[0]).rewards
        why = "today" if today.off else "less-likely" if can else "reward"
        worth = [getattr(slope, end, None) for end in ("slope", "low", "high")]
        likely = one.report.get("log_likelihood")
        of: Any = (name, likely, checks, *worth, today.simulated, today.logged, False, why, False)
        found.append(Simulator(*of))
    able = [one for one in found if one.why == "less-likely"]
    if not able:
        return found
    best = max(able, key=lambda one: (_tier(one), _likelihood(one)))
    return [_used(one, best) for one in found]


def _tier(one: Simulator) -> int:
    """What passes the value check before what it cannot judge, and this before what fails."""
    return {True: 2, None: 1, False: 0}[one.checks.get("value")]


def _likelihood(one: Simulator) -> float:
    return -math.inf if one.log_likelihood is None else one.log_likelihood


def _used(one: Simulator, best: Simulator) -> Simulator:
    if one is best:
        return replace(one, used=True, why="best", calibrated=not one.checks.get("value"))
    worth_less = one.why == "less-likely" and _tier(one) < _tier(best)
    return replace(one, why="slope") if worth_less else one


def level_of(slopes: Sequence[Any], reward: str) -> Any:
    """The slope of what is decided on."""
    return next((one for one in slopes if one.level == LEVEL_OF[reward]), None)


def checks_of(one: FittedModel) -> dict[str, bool | None]:
    """The checks of a fit, by name."""
    record = one.report.get("checks") or {}
    names = dict.fromkeys([*record.get("errors", {}), *record.get("faulted", [])])
    return {name: name not in record["faulted"] for name in names}
