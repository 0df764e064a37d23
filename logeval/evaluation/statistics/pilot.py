"""How many runs a comparison needs, from a few: to tell policies apart that differ by 10%.

The two policies that lost least are looked at. Their paired difference has a variance b^2 between
queries (and draws) and s^2 between the runs of one, so with Q queries and N runs the standard error
of its mean is sqrt((b^2 + s^2 / N) / Q). A difference of ``SIZE`` of the smaller regret is found
with probability ``POWER`` if it is c + z of these, with c the critical value of all comparisons
together (``comparisons``). More runs do nothing about b: where it alone is too much, more queries
are needed. Their number is known as well as the variance between those of the pilot is, whose log
has a standard error of about sqrt(2 / (Q - 1)), and the regret, squared: hence a range.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri

from logeval.evaluation.statistics.comparisons import critical_value
from logeval.evaluation.statistics.intervals import mean, units
from logeval.evaluation.statistics.paired import by_policy
from logeval.evaluation.statistics.summary import is_oracle
from logeval.running.arrays import Floats

SIZE, POWER = 0.1, 0.8
FREEDOM = 40  # degrees of freedom behind s^2: then it is known to a factor of 1.5, in most cases
FEWEST, MOST = 3, 100_000  # runs, of a pilot and altogether


class Need(NamedTuple):
    """What a comparison needs."""

    policies: tuple[str, str]  # the two that were looked at
    regret: float  # of the better
    queries: int
    runs: float  # of each query; inf: no number of runs is enough
    queries_needed: float  # with the runs of the pilot; nan: of a single query nothing is known
    queries_low: float  # 80% interval of their number
    queries_high: float


def pilot_runs(queries: int) -> int:
    """The runs of a pilot with so many queries (and draws)."""
    return max(FEWEST, 1 + math.ceil(FREEDOM / queries))


def need(rows: pd.DataFrame) -> Need | None:
    """What the comparison of a panel needs; None without two policies, or without regret."""
    policies, x = by_policy(rows[~rows["policy"].map(is_oracle)], "regret")
    if len(policies) < 2:
        return None
    order = np.argsort(mean(x), kind="stable")
    regret = float(mean(x)[order[0]])
    if regret <= 0.0:
        return None
    pair = x[..., order[1]] - x[..., order[0]]
    runs, queries = needed(pair, SIZE * regret, len(policies))
    spread = units(x[..., order[:1]])
    error = float(spread.error()[0]) / regret if len(x) > 1 else np.nan
    factor = math.exp(float(ndtri(0.9)) * math.sqrt(2 / max(len(x) - 1, 1) + 4 * error**2))
    return Need(
        (policies[order[0]], policies[order[1]]), regret, len(x), runs, queries,
        queries / factor, queries * factor,
    )  # fmt: skip


def needed(pair: Floats, size: float, policies: int) -> tuple[float, float]:
    """Runs of each query, and queries with as many runs as now, for differences of a pair.

    These are (Q, N) or (Q, D, N). Either may be inf; the queries are nan for a single one.
    """
    z = float(ndtri(POWER))

    def enough(variance: float) -> Callable[[int], bool]:
        return lambda n: (critical_value(n, policies) + z) * math.sqrt(variance / n) <= size

    if len(pair) == 1 and pair.ndim == 2:
        return _smallest(enough(float(np.nanvar(pair, ddof=1)))), math.nan
    u, N = units(pair[..., None]), pair.shape[-1]
    within = float(np.nanmean(np.nanvar(pair, axis=-1, ddof=1)))
    between = max(float(u.values.var(ddof=1)) - within / N, 0.0)
    allowed = (size / (critical_value(u.size, policies) + z)) ** 2 * u.n - between
    runs = max(2.0, math.ceil(within / allowed)) if allowed > 0.0 else math.inf
    queries = math.nan if len(pair) == 1 else _smallest(enough(between + within / N))
    return (runs if runs <= MOST else math.inf), queries


def _smallest(enough: Callable[[int], bool]) -> float:
    """The smallest number from 2 on that is enough: doubled, then halved; inf beyond ``MOST``."""
    high = 2
    while not enough(high):
        high *= 2
        if high > MOST:
            return math.inf
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return float(high)
