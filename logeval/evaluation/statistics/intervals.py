"""What the numbers of a runs table are worth: means, standard errors, intervals.

The samples are arrays (Q, N, ...): Q queries, N runs each, padded with nan where a query has
fewer. A mean is over queries of the mean over runs. The independent units are the queries, or
the runs of a single one. With draws of the simulators' parameters there are four axes,
(Q, D, N, ...) for D draws of each query. ``docs/researchers.md`` says how to read the results,
``docs/evidence.md`` how often the intervals hold. ``by_policy`` makes such arrays.

``compare`` puts all policies against all others, with one error rate for everything said.
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
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from logeval.running.arrays import Bools, Floats, Ints
from logeval.running.seeds import generator

CONFIDENCE = 0.95
SKEWNESS = 5.0  # of positive samples, in units of s / mean; see ``skewed_interval``
WIDEST = 2.0  # log-sd, beyond which skewness is not followed


class Units(NamedTuple):
    """What varies: the standard error of the mean is std(values) / sqrt(n)."""

    values: Floats  # (m, ...)
    n: int  # independent units in the mean
    size: int  # independent units behind the standard error, for Student's quantile

    def error(self) -> Floats:
        """The standard error of the mean; nan with one value."""
        if self.size < 2:
            return np.full(self.values.shape[1:], np.nan)
        error: Floats = self.values.std(axis=0, ddof=1) / np.sqrt(self.n)
        return error


def units(x: Floats) -> Units:
    """The independent values: means of queries, or the runs of a single query.

    With draws, the mean over runs of every draw. The truth is one draw of each query, not the mean
    of many, so however many there are, the mean over Q queries has the variance of its draws over
    Q: that between queries and that between the draws of a query.
    """
    Q = len(x)
    if x.ndim == 4:
        drawn = np.nanmean(x, axis=2)
        return Units(drawn.reshape(-1, *drawn.shape[2:]), Q, Q if Q > 1 else drawn.shape[1])
    if Q > 1:
        return Units(np.nanmean(x, axis=1), Q, Q)
    runs = x[0]
    runs = runs[~np.isnan(runs.reshape(len(runs), -1)).any(axis=1)]
    return Units(runs, len(runs), len(runs))


def query_means(x: Floats) -> Floats:
    """Means over runs, and draws, (Q, ...)."""
    return np.nanmean(np.nanmean(x, axis=2) if x.ndim == 4 else x, axis=1)


def mean(x: Floats) -> Floats:
    """Mean over queries of the mean over runs."""
    return query_means(x).mean(axis=0)


def standard_error(x: Floats) -> float:
    """The papers': averages over queries, run by run, and the standard error of their mean."""
    by_run = np.nanmean(x, axis=0)
    return float(by_run.std(ddof=1) / np.sqrt(len(by_run))) if len(by_run) > 1 else np.nan


def interval(
    x: Floats, level: float = CONFIDENCE, most: Floats | None = None
) -> tuple[Floats, Floats]:
    """Interval of the mean of samples (Q, N, ...), for each of the other axes; nan with one unit.

    Student's where some unit is negative, that of ``skewed_interval`` elsewhere. Of what lies
    between 0 and the ``most`` that the mean can be, so does the interval.
    """
    u = units(x)
    m, n = u.values.mean(axis=0), u.size
    if n < 2:
        return np.full_like(m, np.nan), np.full_like(m, np.nan)
    se = u.error()
    low, high = skewed_interval(m, se, n, level, skewness(u.values))
    negative = (u.values < 0.0).any(axis=0)
    c = t_quantile(n, level)
    low, high = np.where(negative, m - c * se, low), np.where(negative, m + c * se, high)
    if most is None:
        return low, high
    return np.maximum(low, np.minimum(m, 0.0)), np.minimum(high, np.maximum(m, most))


def ratio(x: Floats, y: Floats, level: float = CONFIDENCE) -> tuple[Floats, Floats, Floats]:
    """Mean of x over mean of y, with its interval; all are samples (Q, N, ...), none negative.

    The standard error is that of the linearised ratio: with R = mean x / mean y it is the standard
    error of the mean of x - R y, over mean y. Where mean y is 0, so is the ratio.
    """
    u, v = units(x), units(y)
    m = v.values.mean(axis=0)
    m = np.where(m > 0.0, m, np.inf)
    R = u.values.mean(axis=0) / m
    if u.size < 2:
        return R, np.full_like(R, np.nan), np.full_like(R, np.nan)
    se = u._replace(values=u.values - R * v.values).error() / m
    return R, *skewed_interval(R, se, u.size, level)


def log_spread(values: Floats) -> Floats:
    """The standard deviation of the logarithms of units (m, ...); nan where one is not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(np.where(values > 0.0, values, np.nan)).std(axis=0, ddof=1)


def skewness(values: Floats) -> Floats:
    """The skewness of units over s / mean: SKEWNESS, or as of log-normal ones that spread more."""
    spread = np.minimum(np.nan_to_num(log_spread(values), nan=0.0), WIDEST)
    return np.maximum(SKEWNESS, 2.0 + np.exp(spread**2))


def skewed_interval(
    m: Floats, se: Floats, n: int, level: float = CONFIDENCE, g: Floats | float = SKEWNESS
) -> tuple[Floats, Floats]:
    """Interval of a positive mean m with standard error se from n units that are skewed.

    With r = se / m and Student's quantile c at n - 1 degrees of freedom:

        low  = m exp(-c r)                                 the interval of log m, back
        high = m (1 + c r + g (2 c^2 + 1) r^2 / 6)         Cornish and Fisher's expansion

    The upper end is Student's, corrected for the skewness of the units, which is g times s / m: the
    quantile of the t-statistic moves by g (s / m) (2 c^2 + 1) / (6 sqrt n) (Johnson 1978; Hall
    1992, "On the removal of skewness by transformation"). A few units do not tell their skewness,
    but of positive ones the coefficient of variation does: g is 2 for gamma variables and
    3 + (s/m)^2 for log-normal ones, and a little more makes up for s/m itself being estimated too
    low. SKEWNESS was chosen from 2 ... 6 by ``benchmarks/error_rates.py`` on other seeds than those
    of its tables.
    """
    c = t_quantile(n, level)
    r = np.divide(se, m, out=np.zeros_like(m, dtype=np.float64), where=m > 0.0)
    return m * np.exp(-c * r), m * (1.0 + c * r) + m * r * skew_term(n, level, g) * r


def skew_term(n: int, level: float = CONFIDENCE, g: Floats | float = SKEWNESS) -> Any:
    """What skewness adds to an upper end, in units of se * (se / m)."""
    return g * (2.0 * t_quantile(n, level) ** 2 + 1.0) / 6.0


def t_quantile(n: int, level: float = CONFIDENCE) -> float:
    """Student's two-sided quantile for n units."""
    return float(stdtrit(n - 1, 0.5 + level / 2.0))


REPLICA = ["query", "draw", "run"]


def by_policy(rows: pd.DataFrame, column: str) -> tuple[list[str], Floats]:
    """Policies, and the values (Q, N, policies) of the replicas that all of them have."""
    wide = rows.pivot(index=REPLICA, columns="policy", values=column).dropna()
    return list(wide.columns), by_query(wide)


def by_step(rows: pd.DataFrame, column: str) -> Floats:
    """The values (Q, N, checkpoints) of one policy."""
    return by_query(rows.pivot(index=REPLICA, columns="t", values=column))


def by_query(wide: pd.DataFrame) -> Floats:
    """(Q, N, columns) from a frame indexed by query, draw and run, padded with nan.

    (Q, D, N, columns) if there are draws; without, the draw is 0 everywhere.
    """
    by_draw = wide.groupby(level=["query", "draw"], sort=True)
    query = wide.groupby(level="query", sort=True).ngroup().to_numpy()
    draw, run = by_draw.ngroup().to_numpy(), by_draw.cumcount().to_numpy()
    first = np.full(query.max() + 1, draw.max())
    np.minimum.at(first, query, draw)
    draw = draw - first[query]  # counted within its query
    x = np.full((len(first), draw.max() + 1, run.max() + 1, wide.shape[1]), np.nan)
    x[query, draw, run] = wide.to_numpy(dtype=float)
    drawn = wide.index.get_level_values("draw").max() > 0
    return x if drawn else x[:, 0]


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

    The last term widens it away from 0, for skewed values, as in ``skewed_interval``
    (t is Student's quantile); the test, which looks at the other end, knows nothing of it.
    With one unit all but the means and differences is nan.
    """
    u = units(x)
    m = u.values.mean(axis=0)
    se = np.nan_to_num(u.error())
    r = np.divide(se, m, out=np.zeros(len(m)), where=m > 0.0)
    found = _all_pairs(u, r, level, ROUNDING * scale)
    most = np.maximum(scale or np.inf, np.abs(found.difference))
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
