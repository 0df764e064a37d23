"""Ours beside the published, and the verdict: reproduced, within x%, or not.

A published number is met when ours differs by at most three standard errors (both together: with
dozens of numbers two would be exceeded by chance). What a text says with words has ends; ours must
lie between them by two standard errors, and is undecided where it is nearer to an end, on either
side: "a is below b" is not reproduced by two policies that cannot be told apart. With few runs the
two become Student's quantile, and a single run decides nothing. A difference of at most 10% is said
to be within that percentage.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import pandas as pd
from scipy.special import stdtrit

from logeval.papers.experiment import Claim
from logeval.papers.measures import Measured
from logeval.papers.outcome import Outcome

NUMBER, WORDS = 3.0, 2.0  # standard errors
NEAR = 0.10

REPRODUCED, UNDECIDED, NOT = "reproduced", "undecided", "not reproduced"
SHOWN = "another log: not judged"
SHORTER = "not judged at this horizon"


class Judged(NamedTuple):
    """A claim, what we measured, and the verdict."""

    claim: Claim
    ours: Measured
    distance: float  # to what was published, in standard errors; nan where there are none
    verdict: str

    @property
    def holds(self) -> bool:
        """Whether it was reproduced."""
        return self.verdict == REPRODUCED


def judge(claim: Claim, ours: Measured, *, same_horizon: bool = True) -> Judged:
    """The verdict on a claim."""
    low, high = claim.interval
    away = min(ours.value - low, 0.0) + max(ours.value - high, 0.0)
    error = math.hypot(0.0 if ours.stderr != ours.stderr else ours.stderr, claim.stderr)
    centre = claim.published if claim.published is not None else None
    z = math.nan
    if not same_horizon and claim.judged:
        pass  # the two do not compare
    elif error > 0.0 and centre is not None:
        z = (ours.value - centre) / error
    elif error > 0.0 and away:
        z = away / error
    nearest = low if away < 0.0 else high
    relative = abs(away / nearest) if away and nearest else 0.0 if not away else math.inf
    return Judged(claim, ours, z, _verdict(claim, ours, away, error, relative, same_horizon))


def _verdict(
    claim: Claim, ours: Measured, away: float, error: float, relative: float, same_horizon: bool
) -> str:
    if not claim.judged:
        return SHOWN
    if not same_horizon:
        return SHORTER
    if ours.value != ours.value:
        return NOT
    if ours.runs == 1:
        return UNDECIDED
    if claim.is_number and abs(away) <= NUMBER * error:
        return REPRODUCED
    if not claim.is_number:
        to_an_end = min(abs(ours.value - end) for end in claim.interval)
        few = stdtrit(ours.runs - 1, 0.975) / stdtrit(math.inf, 0.975) if ours.runs else 1.0
        if to_an_end < WORDS * few * error:
            return UNDECIDED
        if not away:
            return REPRODUCED
    if relative <= NEAR:
        return f"within {max(1, math.ceil(100 * relative - 1e-9))}%"
    return NOT


def judged(outcome: Outcome) -> list[Judged]:
    """The verdicts on all claims of an experiment."""
    return [
        judge(claim, claim.measure(outcome), same_horizon=outcome.at_full_horizon)
        for claim in outcome.experiment.claims
    ]


def verdict_of(found: list[Judged]) -> str:
    """All claims of an experiment in a word: 5 of 6 reproduced, 1 within 4%."""
    asked = [one.verdict for one in found if one.claim.judged]
    if not asked:
        return SHOWN
    if SHORTER in asked:
        return SHORTER
    done = asked.count(REPRODUCED)
    if done == len(asked):
        return REPRODUCED
    others = sorted({verdict for verdict in asked if verdict != REPRODUCED})
    return f"{done} of {len(asked)} reproduced, " + ", ".join(
        f"{asked.count(verdict)} {verdict}" for verdict in others
    )


def table(found: list[Judged]) -> pd.DataFrame:
    """One row per claim."""
    rows = []
    for one in found:
        low, high = one.claim.interval
        rows.append(
            {
                "claim": one.claim.text,
                "place": one.claim.place,
                "ours": one.ours.value,
                "stderr": one.ours.stderr,
                "published": one.claim.published,
                "published_stderr": one.claim.stderr or None,
                "low": None if one.claim.is_number or math.isinf(low) else low,
                "high": None if one.claim.is_number or math.isinf(high) else high,
                "standard_errors": one.distance,
                "verdict": one.verdict,
                "reason": "" if one.holds else one.claim.reason,
                "source": one.claim.source,
            }
        )
    return pd.DataFrame(rows)
