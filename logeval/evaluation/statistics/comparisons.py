"""All policies against all others, from the same data, with one error rate for everything said.

Differences are paired: x_i - x_j of the same query (mean over its runs), or of the same run if
there is one query. Every pair is studentised by its own standard error, and all pairs share one
critical value, the 95% quantile of the largest |t| of any pair when all policies are equal:
Tukey's method for paired data with unequal variances. As in his there is one test and one
interval behind it, so p < 0.05 exactly where the interval leaves 0 out, and who is compared with
whom may depend on the data (the best policy is found in them).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import stdtr, stdtrit

from logeval.evaluation.statistics.intervals import CONFIDENCE, Units, skew_term, units
from logeval.running.arrays import Bools, Floats, Ints
from logeval.running.seeds import generator

DRAWS = 40_000
ROUNDING = 1e-9  # of the scale: what computing alone may change


@dataclass(frozen=True)
class Comparisons:
    """Matrices (P, P); entry (i, j) is about mean_i - mean_j."""

    mean: Floats  # (P,)
    difference: Floats
    low: Floats  # simultaneous interval of the difference
    high: Floats
    p: Floats  # corrected for all pairs
    n: int  # independent units
    level: float = CONFIDENCE

    def order(self) -> Ints:
        """The policies, smallest mean first."""
        return np.argsort(self.mean, kind="stable")

    def told_apart(self) -> Bools:
        """(P, P), whether the difference of the two has a sign that is sure."""
        return (self.low > 0.0) | (self.high < 0.0)

    def best_set(self) -> Bools:
        """(P,), whether a policy cannot be told apart from the one of smallest mean.

        It holds the policy whose expectation is smallest with probability of at least ``level``:
        that one is left out only if it is wrongly found larger than another.
        """
        return ~self.told_apart()[self.order()[0]]


def compare(x: Floats, level: float = CONFIDENCE, scale: float = 0.0) -> Comparisons:
    """Compare P policies on paired samples (Q, N, P), smaller is better.

    Values that differ by less than ``ROUNDING`` of the ``scale``, the largest mean possible, do not
    differ, and no interval goes beyond it; 0 where it is not known.

    With d = mean_i - mean_j > 0, se the standard error of its paired mean, c the critical value
    and r the larger relative standard error of the two means, the interval of the difference is

        d - c se ... d + c se + SKEWNESS (2 t^2 + 1) se r / 6

    The last term widens it away from 0, for skewed values, as in ``intervals.skewed_interval``
    (t is Student's quantile); the test, which looks at the other end, knows nothing of it.
    With one unit all but the means and differences is nan.
    """
    u = units(x)
    m = u.values.mean(axis=0)
    se = np.nan_to_num(u.error())
    r = np.divide(se, m, out=np.zeros(len(m)), where=m > 0.0)
    found = _all_pairs(u, r, level, ROUNDING * scale)
    most = scale or np.inf
    return replace(found, low=np.maximum(found.low, -most), high=np.minimum(found.high, most))


def compare_ratios(x: Floats, level: float = CONFIDENCE) -> Comparisons:
    """Compare P policies on the ratios of their values in each unit of (Q, N, P).

    The same as ``compare`` for the logarithms of the units, which are less skewed: exp of a
    difference is the geometric mean over queries of the ratio of two policies. What all policies
    lose more of in one query than in another cancels, so where regrets spread much this finds
    smaller differences than ``compare``; but it weighs all queries alike, those with little regret
    too. All values must be positive, otherwise everything is nan.
    """
    u = units(x)
    positive = (u.values > 0.0).all()
    logs = np.log(u.values) if positive else np.full_like(u.values, np.nan)
    return _all_pairs(u._replace(values=logs), np.zeros(logs.shape[1]), level)


def _all_pairs(u: Units, r: Floats, level: float, rounding: float = 0.0) -> Comparisons:
    """From the units (n, P), and the relative standard errors r (P,) where they are skewed."""
    n, P = u.size, u.values.shape[1]
    m = u.values.mean(axis=0)
    between = u.values[:, :, None] - u.values[:, None, :]
    between[np.abs(between) <= rounding] = 0.0
    difference = m[:, None] - m[None, :]
    difference[~between.any(axis=0)] = 0.0
    if n < 2:
        unknown = np.full((P, P), np.nan)
        return Comparisons(m, difference, unknown, unknown, unknown, n, level)
    se = u._replace(values=between).error()
    size = np.abs(difference)
    inner = size - critical_value(n, P, level) * se
    outer = 2.0 * size - inner + skew_term(n, level) * se * np.maximum(r[:, None], r[None, :])
    larger = difference >= 0.0
    low, high = np.where(larger, inner, -outer), np.where(larger, outer, -inner)
    t = np.divide(size, se, out=np.where(size > 0.0, np.inf, 0.0), where=se != 0.0)
    return Comparisons(m, difference, low, high, p_of(t, n, P), n, level)


def critical_value(n: int, P: int, level: float = CONFIDENCE) -> float:
    """The largest |t| of all pairs of P equal policies on n units stays below it, at the level."""
    pairs = max(1, P * (P - 1) // 2)
    bonferroni = -float(stdtrit(n - 1, (1.0 - level) / 2.0 / pairs))
    if P <= 2:
        return bonferroni
    return min(bonferroni, float(_largest_t(n, P)[-1 - round((1.0 - level) * DRAWS)]))


def p_of(t: Floats, n: int, P: int) -> Floats:
    """The probability that the largest |t| of all pairs of P equal policies is at least t.

    Beyond the reach of the draws, Bonferroni's bound, which is close there.
    """
    pairs = max(1, P * (P - 1) // 2)
    bonferroni: Floats = np.minimum(1.0, 2.0 * pairs * stdtr(n - 1, -t))
    if P <= 2:
        return bonferroni
    above = DRAWS - np.searchsorted(_largest_t(n, P), t, side="left")
    return np.minimum(np.maximum(above, 1) / DRAWS, bonferroni)


@lru_cache(maxsize=64)
def _largest_t(n: int, P: int) -> Floats:
    """The largest |t| of all pairs, sorted, of DRAWS data sets (n, P) of standard normal values.

    Means and the sums of squares and products S around them are drawn directly: S = A A^T with
    normal A (P, n - 1), or Bartlett's triangular A when n > P.
    """
    rng = generator(0, "largest t", n, P)
    i, j = np.triu_indices(P, 1)
    found = []
    for block in np.array_split(np.arange(DRAWS), 40):
        m = rng.standard_normal((len(block), P)) / np.sqrt(n)
        A = rng.standard_normal((len(block), P, min(n - 1, P)))
        if n > P:
            A = np.tril(A)
            A[:, np.arange(P), np.arange(P)] = np.sqrt(
                rng.chisquare(n - 1 - np.arange(P), size=(len(block), P))
            )
        S = A @ A.transpose(0, 2, 1) / (n - 1)
        v = np.diagonal(S, axis1=1, axis2=2)
        se = np.sqrt((v[:, i] + v[:, j] - 2.0 * S[:, i, j]) / n)
        found.append((np.abs(m[:, i] - m[:, j]) / se).max(axis=1))
    return np.sort(np.concatenate(found))
