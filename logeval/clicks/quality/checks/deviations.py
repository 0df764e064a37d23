"""How far the log is from what a model's users do, and how often chance alone is as far.

The log's features and those of n simulations make n + 1 rows. If the model is right, and the
simulations have the parameters' uncertainty in them, the log's row is one like the others. Every
component's deviation D is divided by its standard deviation over all n + 1 rows, z = D / sd; a
check's statistic is its largest |z|, and its p-value the share of rows, the log's among them, with
one as large. Corrected together, a check's p-value is the share of rows whose largest |z| over all
checks of the family is as large (Westfall and Young, 1993: single-step max-T). There are two
families, the checks over all queries and those by query; each p-value is doubled for that.

A check is faulted at a corrected p-value of ``FALSE_ALARMS``. The rule is exact as far as the
parameters' uncertainty is; that is an approximation, so ``FALSE_ALARMS`` is half of the 5% of false
alarms per model that are promised. docs/error-rates.md has the measured rates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logeval.clicks.quality.checks.features import CHECKS, Components
from logeval.running.arrays import Bools, Floats

FALSE_ALARMS = 0.025
FAMILIES = 2
MIN_COUNT = 10.0  # expected events, and expected non-events, below which no ratio is judged


@dataclass(frozen=True)
class Deviations:
    """The components of all checks, over all queries or of one query."""

    parts: Components
    z: Floats  # (n + 1, C); the first row is the log's; 0 where not judged
    judged: Bools  # (C,)
    observed: Floats  # (C,) the log's ratio
    expected: Floats  # (C,) the model's
    low: Floats  # (C,) 95% of the simulations, with the parameters' uncertainty
    high: Floats
    weight: Floats  # (C,) expected denominator

    def of(self, check: str) -> Bools:
        """Which components belong to a check and are judged."""
        mine = np.array([c == check for c in self.parts.check], dtype=np.bool_)
        return mine & self.judged

    def numbers(self, j: int) -> dict[str, float]:
        """The log's ratio of a component, the model's, and the band around it."""
        names = ("observed", "expected", "low", "high")
        return {name: float(getattr(self, name)[j]) for name in names}

    def largest(self, check: str) -> Floats:
        """The largest |z| of a check in each row, (n + 1,); 0 where nothing is judged."""
        return np.abs(self.z[:, self.of(check)]).max(axis=1, initial=0.0)

    def error(self, check: str) -> float:
        """How far off the ratios are, on average over what they are shares of.

        Of a distribution (clicks per SERP, first and last click, distance) the total variation
        distance; of click-through rates the mean |log - model|, weighted by impressions, which is
        the expected calibration error in the case of ``calibration``.
        """
        mine = np.array([c == check for c in self.parts.check]) & (self.weight > 0)
        gap = np.abs(self.observed - self.expected)[mine]
        if check in ("clicks-per-serp", "first-click", "last-click", "distance"):
            return float(gap.sum() / 2)
        weight = self.weight[mine]
        return float((gap * weight).sum() / max(float(weight.sum()), 1e-300))


def deviations(rows: Floats, parts: Components, results: Floats) -> Deviations:
    """From features of the log (first row) and of simulations, (n + 1, features).

    ``results`` is, for each component of ``calibration``, the number of results in its range (else
    nan): these ratios are shown as click-through rates.
    """
    num, den = rows[:, parts.num], rows[:, parts.den]
    mean_num, mean_den = num.mean(axis=0), den.mean(axis=0)
    calibration = np.isfinite(results)
    ratio = np.divide(mean_num, mean_den, out=np.zeros(len(mean_num)), where=mean_den > 0)
    ratio = np.where(calibration, 1.0, ratio)
    D = num - ratio * den
    sd = D.std(axis=0)
    left = np.where(calibration, results, den) - num
    judged = _enough(num) & _enough(left) & (sd > 1e-9)
    z = np.where(judged, D / np.where(sd > 1e-9, sd, 1.0), 0.0)

    # of calibration: clicks and predicted clicks, per result in the range
    of = np.where(calibration, results, den)
    safe = np.maximum(of[1:].mean(axis=0), 1e-12)
    expected = np.where(calibration, den[0], num[1:].mean(axis=0)) / safe
    observed = num[0] / np.maximum(of[0], 1e-12)
    simulated = np.where(calibration, D, num - expected * den)[1:]
    band = np.quantile(simulated, [0.025, 0.975], axis=0) / safe
    low, high = np.maximum(expected + band[0], 0.0), np.minimum(expected + band[1], 1.0)
    weight = np.where(calibration, results, den[1:].mean(axis=0))
    return Deviations(parts, z, judged, observed, expected, low, high, weight)


def _enough(count: Floats) -> Bools:
    """Whether there are events enough to judge; a rule that treats all rows alike.

    Where a model rules out what the log has, its mean is small and one row stands out.
    """
    return (count.mean(axis=0) >= MIN_COUNT) | (count.max(axis=0) >= 3 * MIN_COUNT)


@dataclass(frozen=True)
class Family:
    """Checks that are judged together, by the largest |z| of all in each row."""

    largest: Floats  # (n + 1,)

    @classmethod
    def of(cls, members: list[Deviations], rows: int) -> Family:
        """The family of these deviations."""
        largest = np.zeros(rows)
        for member in members:
            for check in CHECKS:
                largest = np.maximum(largest, member.largest(check))
        return cls(largest)

    @property
    def critical(self) -> float:
        """The |z| above which a component is faulted."""
        return float(np.quantile(self.largest, 1 - FALSE_ALARMS / FAMILIES, method="higher"))

    def p_values(self, member: Deviations, check: str) -> tuple[float, float]:
        """The p-value of a check alone, and corrected for all others; 1 where not judged."""
        own = member.largest(check)
        if not own[0]:
            return 1.0, 1.0
        alone = float((own >= own[0]).mean())
        together = float((self.largest >= own[0]).mean())
        return alone, min(FAMILIES * together, 1.0)
