"""Policies against today's ranker: what each earns, and after how many searches it pays.

The gain of a policy after t searches is the reward that it has earned so far minus that which the
ranker would have earned, R(t) - t r. It falls while the policy explores and rises once its lists
are better. *Break-even* is the number of searches from which on the gain is not negative any more;
the *cost* until then is the deepest point of the gain.

The 95% interval of the break-even holds every t at which the 95% interval of the gain contains 0
(a test turned around, as Fieller's interval of a ratio): the upper ends of the gain cross 0 first,
the lower ends last. An end that is not reached is infinite: never within the steps that were run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from logeval.evaluation.statistics import intervals
from logeval.evaluation.statistics.paired import by_query
from logeval.running.arrays import Floats

LAST = 0.1  # of the steps: what "at the end" means
UNIT = ["query", "draw"]  # what the ranker's reward depends on, within a simulator and track


def against_ranker(rows: pd.DataFrame, problems: pd.DataFrame) -> pd.DataFrame:
    """One row per policy, of the runs of one simulator and track, and its ``problems``.

    ``reward`` is what a search earns at the end (the last tenth of the steps), with its interval;
    ``ranker`` and ``best`` what it earns today, and with the best list. ``gain`` is that of all
    steps together, per search. What is about the ranker is of the ``ranker_queries`` whose lists
    are known, and nan without any.
    """
    known = problems.set_index(UNIT)
    found = [
        {"policy": policy, **_policy(part.set_index(UNIT).join(known[["ranker", "best"]]))}
        for policy, part in rows.groupby("policy", sort=True)
    ]
    return pd.DataFrame(found)


def _policy(rows: pd.DataFrame) -> dict[str, Any]:
    """The numbers of one policy."""
    index = [*UNIT, "run"]
    wide = rows.reset_index().pivot(index=index, columns="t", values="reward")
    t = wide.columns.to_numpy(dtype=np.float64)
    level = rows.reset_index().drop_duplicates(index).set_index(index).loc[wide.index]
    x = by_query(wide)  # (Q, ..., T)
    ranker, best = (by_query(level[[name]]) for name in ("ranker", "best"))  # (Q, ..., 1)
    known = ~np.isnan(ranker.reshape(len(ranker), -1)).all(axis=1)  # queries
    before = np.flatnonzero(t <= (1.0 - LAST) * t[-1])
    start, earned = (t[before[-1]], x[..., before[-1]]) if len(before) else (0.0, 0.0)
    mean, low, high = student(((x[..., -1] - earned) / (t[-1] - start))[..., None])
    found: dict[str, Any] = {"reward": mean[0], "low": low[0], "high": high[0]}
    found["best"] = intervals.mean(best)[0] if not np.isnan(best).all() else np.nan
    found |= {"ranker": np.nan, "ranker_queries": int(known.sum())}
    if not known.any():
        return found | break_even(t, *[np.full(len(t), np.nan)] * 3)
    found["ranker"] = intervals.mean(ranker[known])[0]
    return found | break_even(t, *student(x[known] - ranker[known] * t))


def break_even(t: Floats, gain: Floats, low: Floats, high: Floats) -> dict[str, float]:
    """Break-even and cost from the gain at steps t and its 95% interval; nan without a ranker."""
    names = ("break_even", "break_even_low", "break_even_high", "cost", "cost_low", "cost_high")
    if np.isnan(gain).any():
        return dict.fromkeys(("gain", "gain_low", "gain_high", *names), np.nan)
    unknown = np.isnan(low).any()
    deepest = int(gain.argmin())
    # the further the gain, the sooner it breaks even
    ends = (np.nan, np.nan) if unknown else (crossing(t, high), crossing(t, low))
    costs = [max(-float(x[deepest]), 0.0) for x in (gain, high, low)]
    per_search = [float(x[-1] / t[-1]) for x in (gain, low, high)]
    values = (*per_search, crossing(t, gain), *ends, *(costs if not unknown else costs[:1] * 3))
    found = dict(zip(("gain", "gain_low", "gain_high", *names), values, strict=True))
    if unknown:
        found |= {"cost_low": np.nan, "cost_high": np.nan}
    return found


def crossing(t: Floats, y: Floats) -> float:
    """The step from which on y stays at 0 or above; infinite if it ends below.

    Linear between steps, and from y = 0 at step 0: a curve that is never negative crosses at 0.
    """
    below = np.flatnonzero(y < 0.0)
    if not len(below):
        return 0.0
    i = int(below[-1])
    if i == len(y) - 1:
        return np.inf
    return float(t[i] + (t[i + 1] - t[i]) * y[i] / (y[i] - y[i + 1]))


def student(x: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean and Student's 95% interval of samples (Q, ..., T) that may be negative."""
    units = intervals.units(x)
    mean = intervals.mean(x)
    if units.size < 2:
        return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    half = intervals.t_quantile(units.size) * units.error()
    return mean, mean - half, mean + half
