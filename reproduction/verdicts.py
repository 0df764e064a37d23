"""Ours beside the published, and the verdict: reproduced, not reproduced, or cannot be told.

A published number is met when ours differs by at most three standard errors (both together: with
dozens of numbers two would be exceeded by chance); a difference of at most 10% is given. What a
text says with words has bounds, and the 99% interval of ours (Student's, over the runs) must lie
between them: an interval with a bound in it cannot tell. "a is below b" is not reproduced by two
policies that cannot be told apart, and a single run decides nothing. A claim of several cases has
the verdict of the worst: all must hold, so no case is forgiven for there being many.

What an independent program found is not published: ours agrees with it or differs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from scipy.special import stdtrit

from reproduction.data import Claim
from reproduction.measures import Measured, measured

if TYPE_CHECKING:
    from reproduction.run import Outcome

NUMBER = 3.0  # standard errors
CONFIDENCE_OF_WORDS = 0.99  # of their interval
NEAR = 0.10

REPRODUCED, UNDECIDED, NOT = "reproduced", "cannot be told", "not reproduced"
AGREES, DIFFERS = "agrees", "differs"
BY = f"{DIFFERS} by "  # so many percent
SHOWN = "another log: not judged"
SHORTER = "not judged at this horizon"


class Judged(NamedTuple):
    """A claim, what we measured, and the verdict."""

    claim: Claim
    ours: Measured
    distance: float  # to the number or the nearer bound, in standard errors; nan without them
    verdict: str

    @property
    def holds(self) -> bool:
        return self.verdict in (REPRODUCED, AGREES)


def judge(claim: Claim, ours: Measured, *, same_horizon: bool = True) -> Judged:
    """The verdict on one measured value."""
    error = math.hypot(0.0 if ours.stderr != ours.stderr else ours.stderr, claim.stderr)
    nearest = min(claim.interval, key=lambda bound: abs(ours.value - bound))
    compared = error > 0.0 and (same_horizon or not claim.judged)
    distance = (ours.value - nearest) / error if compared else math.nan
    return Judged(claim, ours, distance, _verdict(claim, ours, nearest, error, same_horizon))


def _verdict(claim: Claim, ours: Measured, nearest: float, error: float, same_horizon: bool) -> str:
    if not claim.judged:
        return SHOWN
    if not same_horizon:
        return SHORTER
    if ours.value != ours.value:
        return NOT
    if ours.runs == 1:
        return UNDECIDED
    low, high = claim.interval
    inside, away = low <= ours.value <= high, abs(ours.value - nearest)
    good, bad = (REPRODUCED, NOT) if claim.is_published else (AGREES, DIFFERS)
    if not claim.is_number:
        if away < _quantile(ours.runs) * error:
            return UNDECIDED
        return good if inside else bad
    if away <= NUMBER * error:
        return good
    relative = away / abs(nearest) if nearest else math.inf
    return f"{BY}{max(1, math.ceil(100 * relative - 1e-9))}%" if relative <= NEAR else bad


def _quantile(runs: int) -> float:
    """Standard errors on either side of the mean that an interval has."""
    return float(stdtrit(runs - 1 if runs else math.inf, (1.0 + CONFIDENCE_OF_WORDS) / 2.0))


def judge_cases(claim: Claim, outcome: Outcome) -> Judged:
    """The verdict on the case that is hardest for the claim, where there are several."""
    found = [
        judge(claim, measured(outcome, case), same_horizon=outcome.at_full_horizon)
        for case in claim.cases
    ]
    return max(found, key=_hardness)


def _hardness(one: Judged) -> tuple[int, float]:
    """Greater for what is worse for the claim: the verdict, then how near or beyond a bound."""
    low, high = one.claim.interval
    severity = 0 if one.holds else 1 if one.verdict == UNDECIDED else 2
    beyond = max(low - one.ours.value, one.ours.value - high)
    distance = one.distance if one.distance == one.distance else beyond
    return severity, math.copysign(abs(distance), beyond)


def judged(outcome: Outcome) -> list[Judged]:
    """The verdicts on all claims of an experiment."""
    return [judge_cases(claim, outcome) for claim in outcome.experiment.claims]
