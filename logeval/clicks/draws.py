"""Draws of fitted parameters: what else the models could be, for all that the log says.

A parameter with value x and 95% interval (low, high) is drawn on the scale of its logit z, as

    z(x) + u (z(high) - z(x)) / 1.96  for u > 0,   z(x) + u (z(x) - z(low)) / 1.96  for u < 0,

with u standard normal, so that its median is x and 95% of the draws lie in the interval of the fit.
Of what was never observed, whose interval is (0, 1), draws are uniform. Parameters are drawn apart
from each other: the table of models has no correlations. Terminations of a DCM that were set to
that of another position stay equal to it. Pooled parameters are the same for all queries of a draw.

Draw d of a query depends on the seed, the model, the query and d alone.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import expit, logit, ndtr

from logeval import seeds
from logeval.arrays import Floats
from logeval.clicks.estimation.estimates import ParameterEstimate, Z
from logeval.clicks.fitted import FittedModel
from logeval.clicks.models.model import ClickModel
from logeval.errors import LogevalError
from logeval.log.queries import Query

EDGE = 1e-9  # logits are taken of values at least this far from 0 and 1


def drawn_value(estimate: ParameterEstimate, u: Floats) -> Floats:
    """The values at the normal quantiles u, in the shape of the estimate."""
    x, low, high = (
        logit(np.clip(v, EDGE, 1 - EDGE)) for v in (estimate.value, estimate.low, estimate.high)
    )
    z = x + u / Z * np.where(u > 0, high - x, x - low)
    unknown = (estimate.low <= 0.0) & (estimate.high >= 1.0)
    fixed = estimate.low == estimate.high
    drawn = np.where(unknown, ndtr(u), expit(z))
    return np.where(fixed, estimate.value, drawn)


def drawn_model(fitted: FittedModel, query: Query, draw: int, seed: int) -> ClickModel:
    """Draw number ``draw``, from 1, of the model of a query."""
    q = fitted.index[query]
    rng = seeds.generator(seed, "draw", fitted.model, str(query), draw)
    pooled = seeds.generator(seed, "draw", fitted.model, "pooled", draw)
    span = slice(fitted.offsets[q], fitted.offsets[q + 1])
    estimates = dict(fitted.estimates)
    for p in fitted.kind.PARAMETERS:
        whole = fitted.estimates[p.field]
        at = span if p.kind == "item" else slice(fitted.group(q), fitted.group(q) + 1)
        mine = ParameterEstimate(*(np.asarray(getattr(whole, n))[at] for n in FIELDS))
        if not (np.isfinite(mine.low) & np.isfinite(mine.high)).all():
            raise LogevalError(
                f"{fitted.model} {p.name} of query {query} has no intervals to draw from; fit the "
                "model to a log, or evaluate without draws"
            )
        shared = p.kind != "item" and fitted.scope == "pooled"
        u = (pooled if shared else rng).standard_normal(mine.value.shape)
        if p.kind == "position" and whole.raw is not None:
            for k in np.flatnonzero(np.isfinite(whole.raw[at][0])).tolist():
                u[0, k] = u[0, max(k - 1, 0)]
        value = whole.value.copy()
        value[at] = drawn_value(mine, u)
        estimates[p.field] = replace(whole, value=value)
    return replace(fitted, estimates=estimates).of(query)


FIELDS = ("value", "low", "high", "observations")
