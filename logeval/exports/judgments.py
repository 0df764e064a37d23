"""Graded relevance of (query, item) pairs, each with what it rests on.

The relevance of an item is its attraction (clicked when examined), its satisfaction (the search
ends there, given the click: SDBN and DBN), or the product of both. Its grade is the number of
thresholds that it reaches. An item is *uncertain* when the two ends of its 95% interval have
different grades: another log of this size might have graded it otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from logeval.clicks.estimation.estimates import ParameterEstimate
from logeval.clicks.estimation.posterior import interval
from logeval.clicks.fitted import FittedModel
from logeval.clicks.naming import Naming
from logeval.errors import LogevalError
from logeval.running.arrays import Floats, Ints

FIELDS = {"attraction": ("attraction", "ctr"), "satisfaction": ("satisfaction",)}
FEWEST_DRAWS = 10  # below which their spread says nothing


def graded(
    fitted: FittedModel,
    relevance: str,
    thresholds: Sequence[float],
    quantiles: int | None,
    naming: Naming,
) -> pd.DataFrame:
    """One row per (query, item): grade, relevance with its interval, observations."""
    x = relevance_of(fitted, relevance)
    cuts = np.asarray(thresholds, dtype=float)
    if quantiles is not None:
        cuts = np.unique(np.quantile(x.value, np.arange(1, quantiles) / quantiles))
    known = ~np.isnan(x.low) & ~np.isnan(x.high)
    grade, low, high = (_grade(v, cuts) for v in (x.value, x.low, x.high))
    names = np.array(naming.queries(fitted.queries), dtype=object)
    return pd.DataFrame(
        {
            "query": names[fitted.item_query],
            "item": naming.items(fitted.item_ids),
            "grade": grade,
            "relevance": x.value,
            "low": x.low,
            "high": x.high,
            "observations": x.observations,
            "uncertain": known & (low != high),
            "model": fitted.model,
            "query_number": fitted.item_query,
            "item_id": fitted.item_ids,
        }
    )


def _grade(value: Floats, cuts: Floats) -> Ints:
    return np.searchsorted(cuts, value, side="right")


def withheld_words(every: pd.DataFrame, uncertain: str) -> str:
    """How many judgments there are, and what became of those that are uncertain."""
    done = {"withhold": "withheld", "mark": "marked", "keep": "kept"}[uncertain]
    n, out_of = int(every["uncertain"].sum()), len(every)
    left = out_of - n if uncertain == "withhold" else out_of
    if every["low"].isna().all():
        return f"{left:,} judgments without intervals (the models have none): all kept"
    share, hint = n / max(out_of, 1), "" if left else "; keep them with uncertain=mark"
    return (
        f"{left:,} judgments of {every['query_number'].nunique():,} queries; {n:,} of "
        f"{out_of:,} items ({share:.0%}) have a 95% interval that spans grades and are {done}{hint}"
    )


def relevance_of(fitted: FittedModel, relevance: str) -> ParameterEstimate:
    """The relevance of all (query, item) pairs of a model, (I,), with its intervals."""
    if relevance != "product":
        return _of_classes(fitted, relevance)
    attraction, satisfaction = (_of_classes(fitted, name) for name in FIELDS)
    value = attraction.value * satisfaction.value
    observations = np.minimum(attraction.observations, satisfaction.observations)
    draws = _product(attraction.draws, satisfaction.draws)
    if draws is not None:
        return _with_draws(value, draws, observations)
    low, high = (getattr(attraction, n) * getattr(satisfaction, n) for n in ("low", "high"))
    return ParameterEstimate(value, low, high, observations)  # wider than 95%


def _of_classes(fitted: FittedModel, relevance: str) -> ParameterEstimate:
    """A parameter of items; with classes of users the mean over users."""
    found = [_parameter(part, relevance) for part in fitted.classes]
    if len(found) == 1:
        return found[0]
    share = fitted.estimates["share"]

    def mean(share_of: Floats, values: list[Floats]) -> Floats:
        total: Floats = (share_of[fitted.item_query] * np.stack(values, axis=1)).sum(axis=1)
        return total

    value = mean(share.value, [x.value for x in found])
    observations = np.sum([x.observations for x in found], axis=0)
    kept = [x.draws for x in found if x.draws is not None and len(x.draws) >= FEWEST_DRAWS]
    if share.draws is None or len(kept) < len(found):
        return ParameterEstimate(value, value * np.nan, value * np.nan, observations)
    draws = np.stack(
        [mean(share.draws[d], [x[d] for x in kept]) for d in range(min(map(len, kept)))]
    )
    return _with_draws(value, draws, observations)


def _parameter(fitted: FittedModel, relevance: str) -> ParameterEstimate:
    for p in fitted.kind.PARAMETERS:
        if p.kind == "item" and p.name in FIELDS[relevance]:
            return fitted.estimates[p.field]
    able = {"attraction": "dcm", "satisfaction": "sdbn or dbn"}[relevance]
    raise LogevalError(f"{fitted.model} has no {relevance} of items; fit {able}")


def _product(a: Floats | None, b: Floats | None) -> Floats | None:
    """The products of joint draws; None where there are too few."""
    if a is None or b is None or min(len(a), len(b)) < FEWEST_DRAWS:
        return None
    n = min(len(a), len(b))
    return a[:n] * b[:n]


def _with_draws(value: Floats, draws: Floats, observations: Floats) -> ParameterEstimate:
    """The interval of the Beta that has the mean and spread of the draws."""
    mean = draws.mean(axis=0)
    square = mean**2 + draws.var(axis=0, ddof=1)
    return interval(value, mean, square, observations, draws)
