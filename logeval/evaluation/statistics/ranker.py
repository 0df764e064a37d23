"""Policies against today's ranker: what each earns, and after how many searches it pays.

The gain of a policy after t searches is the reward that it has earned so far minus that which the
ranker would have earned, R(t) - t r. It falls while the policy explores and rises once its lists
are better. *Break-even* is the number of searches from which on the gain is not negative any more;
the *cost* until then is the deepest point of the gain. The gain is the mean over queries; of a
single query with draws the break-even is the median of those of its draws.

The 95% interval of the break-even holds every t at which the 95% interval of the gain contains 0
(a test turned around, as Fieller's interval of a ratio): the upper ends of the gain cross 0 first,
the lower ends last. An end that is not reached is infinite: never within the steps that were run.
Where the gain is really deepest is not known, so the cost may be as high as the deepest of all
lower ends, and is at least that of the upper end where the gain seems deepest.
``docs/evidence.md`` says how often all of these hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from logeval.evaluation.statistics import intervals
from logeval.evaluation.statistics.intervals import by_query
from logeval.running.arrays import Floats

LAST = 0.1  # of the steps: what "at the end" means
DRAWN = 4  # axes of what was earned on draws: query, draw, run and step
UNIT = ["query", "draw"]  # what the ranker's reward depends on, within a simulator and track


class Earned(NamedTuple):
    """What a policy has earned at steps t, and what the ranker and the best list earn per step."""

    queries: list[str]  # Q
    t: Floats  # (T,)
    x: Floats  # (Q, ..., T)
    ranker: Floats  # (Q, ..., 1)
    best: Floats  # (Q, ..., 1)
    share: Floats | None = None  # (Q,) of each query in the traffic; None: all the same

    def where_known(self) -> Earned:
        """That of the queries whose ranker is known."""
        known = ~np.isnan(self.ranker.reshape(len(self.ranker), -1)).all(axis=1)
        return self._of(np.flatnonzero(known))

    def by_query(self) -> Iterator[Earned]:
        """That of each query, without what others have more of (draws and runs)."""
        for i in range(len(self.queries)):
            one = self._of(np.array([i]))
            for axis in range(1, one.x.ndim - 1):
                others = tuple(a for a in range(one.x.ndim) if a != axis)
                there = np.flatnonzero(~np.isnan(one.x).all(axis=others))
                levels = (np.take(x, there, axis) for x in (one.x, one.ranker, one.best))
                one = Earned(one.queries, one.t, *levels)
            yield one

    def _of(self, queries: Any) -> Earned:
        names = [self.queries[i] for i in queries]
        share = None if self.share is None else self.share[queries] / self.share[queries].sum()
        levels = self.ranker[queries], self.best[queries]
        return Earned(names, self.t, self.x[queries], *levels, share)

    def weighted(self, x: Floats) -> Floats:
        """Values (Q, ..., T) whose mean over queries is that of the traffic.

        m + Q share (x - m) with that mean m: what a query adds to it, linearised as in a ratio.
        """
        if self.share is None:
            return x
        m = self.share @ intervals.query_means(x)
        w = (len(x) * self.share).reshape(-1, *(1,) * (x.ndim - 1))
        return np.asarray(m + w * (x - m))


def earned(rows: pd.DataFrame, problems: pd.DataFrame) -> dict[str, Earned]:
    """By policy, from the runs of one simulator and track, and its ``problems``."""
    index = [*UNIT, "run"]
    found = {}
    for policy, part in rows.groupby("policy", sort=True):
        wide = part.pivot(index=index, columns="t", values="reward")
        keys = wide.index.to_frame(index=False)
        level = keys.merge(problems, how="left", on=UNIT).set_index(index)
        levels = (by_query(level[[name]]) for name in ("ranker", "best"))
        queries = sorted(wide.index.unique("query"))
        found[str(policy)] = Earned(queries, wide.columns.to_numpy(float), by_query(wide), *levels)
    return found


def against_ranker(
    found: dict[str, Earned],
    each_query: bool = False,
    traffic: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """One row per policy, of what was ``earned`` on one simulator and track.

    With ``each_query``, one per query and policy. Queries count alike, or by their ``traffic``.

    ``reward`` is what a search earns at the end (the last tenth of the steps), with its interval;
    ``ranker`` and ``best`` what it earns today, and with the best list. ``ahead`` is the reward at
    the end minus that of the ranker, query by query: its interval is narrower than that of the
    reward wherever queries differ more than policies. ``gain`` is that of all steps together, per
    search. What is about the ranker is of the ``ranker_queries`` whose lists are known, and nan
    without any.
    """
    if traffic is not None:
        found = {
            policy: its._replace(share=_shares(traffic, its.queries))
            for policy, its in found.items()
        }
    if not each_query:
        return pd.DataFrame([{"policy": policy, **_policy(its)} for policy, its in found.items()])
    table = pd.DataFrame(
        {"query": one.queries[0], "policy": policy, **_policy(one)}
        for policy, its in found.items()
        for one in its.by_query()
    )
    return table.sort_values(["query", "policy"], kind="stable", ignore_index=True)


def _shares(traffic: Mapping[str, float], queries: list[str]) -> Floats:
    each = np.array([traffic[query] for query in queries])
    return np.asarray(each / each.sum())


def _policy(its: Earned) -> dict[str, Any]:
    """The numbers of one policy."""
    found = _named("reward", "low", "high", values=student(its.weighted(_at_the_end(its))))
    found["low"] = np.maximum(found["low"], 0.0)  # what a search earns is never negative
    found["best"] = _mean(its.weighted(its.best))
    its = its.where_known()
    found |= {"ranker": _mean(its.weighted(its.ranker)), "ranker_queries": len(its.x)}
    ahead = gain = (np.full(len(its.t), np.nan),) * 3
    if len(its.x):
        ahead = student(its.weighted(_at_the_end(its) - its.ranker))
        gain = student(its.weighted(its.x - its.ranker * its.t))
    found |= _named("ahead", "ahead_low", "ahead_high", values=ahead)
    found |= break_even(its.t, *gain)
    if len(its.x) == 1 and its.x.ndim == DRAWN:
        found["break_even"] = _half_of_draws(its, found["break_even_low"], found["break_even_high"])
    return found


def _half_of_draws(its: Earned, low: float, high: float) -> float:
    """The break-even of a single query: half of its draws come before it, within the interval.

    That of the mean gain is that of the few draws that gain most, and comes too early.
    """
    gains = np.nanmean(its.x - its.ranker * its.t, axis=2)[0]
    middle = float(np.median([crossing(its.t, gain) for gain in gains]))
    return middle if np.isnan(low) else min(max(middle, low), high)


def _at_the_end(its: Earned) -> Floats:
    """Reward per search in the last tenth of the steps, (Q, ..., 1)."""
    before = np.flatnonzero(its.t <= (1.0 - LAST) * its.t[-1])
    last = before[-1:]
    start, so_far = (its.t[last], its.x[..., last]) if len(before) else (0.0, 0.0)
    return np.asarray((its.x[..., -1:] - so_far) / (its.t[-1] - start))


def _named(*names: str, values: tuple[Floats, Floats, Floats]) -> dict[str, Any]:
    return dict(zip(names, (value[0] for value in values), strict=True))


def _mean(levels: Floats) -> float:
    return float(intervals.mean(levels)[0]) if not np.isnan(levels).all() else np.nan


def break_even(t: Floats, gain: Floats, low: Floats, high: Floats) -> dict[str, float]:
    """Break-even and cost from the gain at steps t and its 95% interval; nan without a ranker."""
    names = ("break_even", "break_even_low", "break_even_high", "cost", "cost_low", "cost_high")
    if np.isnan(gain).any():
        return dict.fromkeys(("gain", "gain_low", "gain_high", *names), np.nan)
    unknown = np.isnan(low).any()
    deepest = int(gain.argmin())
    # the further the gain, the sooner it breaks even
    ends = (np.nan, np.nan) if unknown else (crossing(t, high), crossing(t, low))
    costs = [max(-float(y), 0.0) for y in (gain[deepest], high[deepest], low.min())]
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
    """Mean and Student's 95% interval of samples (Q, ..., T) that may be negative.

    Gains are skewed, one way early and the other way late: the end on the long side is moved out by
    what the skewness of the units says (Cornish and Fisher, as in ``skewed_interval``). With draws
    of a single query the interval is where one draw more would be, since the truth is one: its
    distance from the mean of D draws has the variance of a draw times 1 + 1/D.
    """
    units = intervals.units(x)
    mean = intervals.mean(x)
    if units.size < 2:
        return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    error = units.error()
    half = intervals.t_quantile(units.size) * error
    if units.n == 1:
        half = half * np.sqrt(1.0 + 1.0 / units.size)
        return mean, mean - half, mean + half
    out = intervals.skew_term(units.size, g=_skewness(units.values)) / np.sqrt(units.n) * error
    return mean, mean - half + np.minimum(out, 0.0), mean + half + np.maximum(out, 0.0)


def _skewness(values: Floats) -> Floats:
    """The skewness of units (m, ...); 0 where all are equal."""
    apart = values - values.mean(axis=0)
    second, third = (apart**2).mean(axis=0), (apart**3).mean(axis=0)
    return np.divide(third, second**1.5, out=np.zeros_like(second), where=second > 0.0)
