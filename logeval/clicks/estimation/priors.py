"""Priors: what is believed of an item that was hardly ever shown, and of a query's positions.

A prior is a pair of pseudo-counts (a, b) per item: a value is (num + a) / (den + a + b),
which maximises the likelihood penalised by a ln(x) + b ln(1 - x), and an item never seen
gets a / (a + b).

``empirical-bayes`` fits a Beta to the items of each query by maximising the beta-binomial
likelihood of their counts, over all queries at once. What a ranker shows rarely is worse than
what it shows often, so the logit of the Beta's mean depends on the item's exposure, the logit of
the share of the query's SERPs that show it: a line with two bends, the same for all queries (of
each query by itself in the scope ``per-query``). An item never shown has the exposure of half a
SERP. A query with fewer than ``MIN_ITEMS`` items takes the Beta of the whole log. ``pyclick`` is
(1, 1) everywhere, ``none`` is (0, 0).

Parameters that the items of a query share (of positions, and scalars) have Beta(1, 1), except in
the scope ``partial``: there a Beta is fitted to the values of all queries at each position, so
that a query with few SERPs borrows from the others as much as the queries are alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from logeval.clicks.estimation.beta import Betas, fit_betas
from logeval.clicks.estimation.patterns import FoldedClicks
from logeval.errors import unknown_names
from logeval.running.arrays import Bools, Floats, Ints, sum_by

Smoothing = Literal["empirical-bayes", "pyclick", "none"]
MIN_ITEMS = 10
BENDS = -4.0, 0.0  # of exposure: shares of 2% and 50%
MIN_QUERIES = 5  # with fewer, a parameter that items share keeps its flat prior
Pair = tuple[Floats, Floats]  # pseudo-counts a, b


class Exposure(NamedTuple):
    """How often items are shown, as covariates of their priors, less their mean over the query.

    The logit x of the share of the query's SERPs, in three parts: below ``BENDS``, between, above.
    """

    X: Floats  # (I, 3)
    unseen: Floats  # (Q, 3) of an item never shown
    centre: Floats  # (Q, 3) that mean

    @classmethod
    def of(cls, data: FoldedClicks) -> Exposure:
        """Of the items of a log."""
        q = data.item_query
        missed = np.maximum(data.serps[q] - data.impressions, 0.0)
        X = cls.parts(np.log((data.impressions + 0.5) / (missed + 0.5)))
        items = np.maximum(np.bincount(q, minlength=data.Q), 1)[:, None]
        centre = np.stack([sum_by(q, x, data.Q) for x in X.T], axis=1) / items
        return cls(X - centre[q], cls.parts(np.log(0.5 / (data.serps + 0.5))) - centre, centre)

    @staticmethod
    def parts(x: Floats) -> Floats:
        """A slope of its own in each part makes a line with two bends."""
        low, high = BENDS
        return np.stack([np.minimum(x, low), np.clip(x, low, high), np.maximum(x, high)], axis=1)


@dataclass(frozen=True)
class Prior:
    """Pseudo-counts of every item, (I,), and what is believed of those never seen."""

    a: Floats
    b: Floats
    mean: Floats  # (Q,) the value of an item never shown
    log_mean: float  # the same for a query never seen
    strength: Floats  # (Q,) a + b
    betas: Betas | None = None  # of the queries, where they were fitted
    own: Bools | None = None  # (Q,) which were, and to at least MIN_ITEMS items


def check(smoothing: str) -> Smoothing:
    """The smoothing of that name."""
    if smoothing not in get_args(Smoothing):
        raise unknown_names("smoothing", [smoothing], get_args(Smoothing))
    return smoothing  # type: ignore[return-value]


def item_prior(
    smoothing: Smoothing,
    scope: str,
    data: FoldedClicks,
    num: Floats,
    den: Floats,
    start: Prior | None = None,
) -> Prior:
    """The prior of an item parameter with ``num`` successes in ``den`` trials, (I,) each.

    The search for the empirical one begins at ``start``.
    """
    if smoothing == "empirical-bayes":
        return _empirical_bayes(scope, data, np.minimum(num, den), den, start)
    pseudo, strength = flat_prior(smoothing, (data.I,))[0], 2 * flat_prior(smoothing, (data.Q,))[0]
    if smoothing == "pyclick":
        return Prior(pseudo, pseudo, np.full(data.Q, 0.5), 0.5, strength)
    totals = [sum_by(data.item_query, x, data.Q) for x in (num, den)]
    log_mean = float(num.sum() / max(den.sum(), 1.0))
    mean = np.divide(totals[0], totals[1], out=np.full(data.Q, log_mean), where=totals[1] > 0)
    return Prior(pseudo, pseudo, mean, log_mean, strength)


def flat_prior(smoothing: Smoothing, shape: tuple[int, ...]) -> Pair:
    """The pseudo-counts of parameters that know nothing of others."""
    c = 0.0 if smoothing == "none" else 1.0
    return np.full(shape, c), np.full(shape, c)


def prior_over_queries(successes: Floats, trials: Floats) -> Pair:
    """The Beta over queries (first axis) at each place, from the evidence of each query.

    One more query with one success in two trials keeps places of little evidence off 0 and 1.
    """
    num, den, group = by_place(successes, trials)
    C = den.size // (len(trials) + 1)
    seen = den > 0.01  # less than that is rounding
    betas = fit_betas(num[seen], den[seen], group[seen], C)
    a, b = betas.of(np.arange(C), np.zeros((C, 0)))
    few = np.bincount(group[seen], minlength=C) <= MIN_QUERIES
    shape = trials.shape[1:]
    return np.where(few, 1.0, a).reshape(shape), np.where(few, 1.0, b).reshape(shape)


def by_place(successes: Floats, trials: Floats) -> tuple[Floats, Floats, Ints]:
    """Counts of all queries, place after place, with that one more: flat, and the place."""
    G = len(trials)
    num = np.vstack([successes.reshape(G, -1), np.ones((1, successes[0].size))])
    den = np.vstack([trials.reshape(G, -1), np.full((1, trials[0].size), 2.0)])
    return num.T.ravel(), den.T.ravel(), np.repeat(np.arange(num.shape[1]), G + 1)


def evidence(x: Floats, variance: Floats, prior: Pair) -> tuple[Floats, Floats]:
    """Counts that say as much of x as the clicks do, all else unknown: (successes, trials).

    At the mode x of the posterior, with ``variance`` of its logit, the information of the clicks is
    1 / variance - (a + b) x (1 - x), and their gradient (a + b) x - a. A variance of zero marks a
    value that is fixed, of which the clicks say nothing.
    """
    a, b = np.broadcast_to(prior[0], x.shape), np.broadcast_to(prior[1], x.shape)
    known = np.isfinite(variance) & (variance > 0)
    spread = np.maximum(x * (1 - x), 1e-12)
    total = np.divide(1.0, variance * spread, out=np.zeros(x.shape), where=known)
    trials = np.where(known, np.maximum(total - a - b, 0.0), 0.0)
    return np.clip(trials * x + (a + b) * x - a, 0.0, trials), trials


def _empirical_bayes(
    scope: str, data: FoldedClicks, num: Floats, den: Floats, start: Prior | None
) -> Prior:
    """A Beta per query; queries with few items have that of all items of the log."""
    exposure, q, seen = Exposure.of(data), data.item_query, den > 0
    every, nobody = np.arange(data.Q), np.zeros(data.Q, dtype=np.int64)
    slopes = every if scope == "per-query" else nobody
    betas = fit_betas(
        num[seen], den[seen], q[seen], data.Q, exposure.X[seen], slopes,
        None if start is None else start.betas,
    )  # fmt: skip
    own = np.bincount(q[seen], minlength=data.Q) >= MIN_ITEMS
    middle = exposure.centre.mean(axis=0)
    plain = exposure.X + exposure.centre[q] - middle
    log = fit_betas(num[seen], den[seen], q[seen] * 0, 1, plain[seen], nobody[:1])
    level, strength, slope = (x[0] for x in log)
    betas = Betas(
        np.where(own, betas.level, level + (exposure.centre - middle) @ slope),
        np.where(own, betas.strength, strength),
        np.where(own[:, None], betas.slope, slope),
    )
    a, b = betas.of(q, exposure.X)
    up, down = betas.of(every, exposure.unseen)
    shown = log.of(q * 0, plain)  # in a query never seen, items are as good as those shown here
    log_mean = float(np.average(shown[0] / strength, weights=data.impressions))
    return Prior(a, b, up / (up + down), log_mean, betas.strength, betas, own)
