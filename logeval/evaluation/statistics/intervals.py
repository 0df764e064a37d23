"""What the numbers of a runs table are worth: means, standard errors, intervals.

The samples are arrays (Q, N, ...): Q queries, N runs each, padded with nan where a query has
fewer. A mean is over queries of the mean over runs. The independent units are the queries, or
the runs of a single one. With draws of the simulators' parameters there are four axes,
(Q, D, N, ...) for D draws of each query. ``docs/statistics.md`` says how to read the results,
``docs/error-rates.md`` how often the intervals hold; ``statistics.comparisons`` compares policies.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from logeval.running.arrays import Floats

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
