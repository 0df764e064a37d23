"""The power of a test in n searches, and the searches that a power needs.

Both tests are two-sided z-tests of a mean: an A/B test, which sends every search to either ranker
by a coin, of the difference in what a search earns; an interleaving of the credit of a search.
What searches of different queries earn differs too, and is part of the variance.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from logeval.running.arrays import Floats

MOST = 1e12  # searches, beyond which none are named


class Effect(NamedTuple):
    """What a test looks for: the mean, and the standard deviation of one search (A/B: see of)."""

    mean: float
    sd: float

    @classmethod
    def of_interleaving(cls, traffic: Floats, first: Floats, second: Floats) -> Effect:
        """From the moments of the credit in each query, (Q,)."""
        mean = float(traffic @ first)
        return cls(mean, math.sqrt(max(float(traffic @ second) - mean**2, 0.0)))

    @classmethod
    def of_ab(
        cls, traffic: Floats, control: tuple[Floats, Floats], treatment: tuple[Floats, Floats]
    ) -> Effect:
        """From the moments of both arms; half of n searches each: sd^2 = 2 (var + var)."""
        means = [float(traffic @ first) for first, _ in (control, treatment)]
        variances = [
            float(traffic @ second) - mean**2
            for (_, second), mean in zip((control, treatment), means, strict=True)
        ]
        return cls(means[1] - means[0], math.sqrt(max(2.0 * sum(variances), 0.0)))


def power(effects: list[Effect], n: Floats | float, level: float = 0.05) -> Floats:
    """The probability that a test of n searches finds the effect, with its sign.

    Of several effects (draws of the users' parameters), the mean.
    """
    z = -ndtri(level / 2.0)
    n = np.asarray(n, dtype=float)
    total = np.zeros(n.shape)
    for mean, sd in effects:
        shift = np.sqrt(n) * abs(mean) / sd if sd > 0.0 else np.full(n.shape, np.inf * abs(mean))
        total += ndtr(np.nan_to_num(shift, nan=0.0, posinf=1e9) - z)
    found: Floats = total / len(effects)
    return found


def searches_needed(effects: list[Effect], wanted: float = 0.8, level: float = 0.05) -> float:
    """The fewest searches with that power; infinite where there are none."""
    low, high = 1.0, MOST
    if float(power(effects, high, level)) < wanted:
        return math.inf
    while high / low > 1.0 + 1e-9:
        middle = math.sqrt(low * high)
        if float(power(effects, middle, level)) < wanted:
            low = middle
        else:
            high = middle
    return math.ceil(high * (1.0 - 1e-9))
