"""Priors: what is believed of an item that was hardly ever shown, and of a query's positions.

A prior is a pair of pseudo-counts (a, b) per query: a value is (num + a) / (den + a + b),
which maximises the likelihood penalised by a ln(x) + b ln(1 - x), and an item never seen
gets a / (a + b).

``empirical-bayes`` fits a Beta(a, b) to the items of each query by maximising the
beta-binomial likelihood of their counts (Minka, "Estimating a Dirichlet distribution", 2000),
over all queries at once. A query with fewer than ``MIN_ITEMS``
items takes the Beta of the whole log. ``pyclick`` is (1, 1) everywhere, ``none`` is (0, 0).

Parameters that the items of a query share (of positions, and scalars) have Beta(1, 1), except in
the scope ``partial``: there a Beta is fitted to the values of all queries at each position, so
that a query with few SERPs borrows from the others as much as the queries are alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from logeval.arrays import Floats, Ints, sum_by
from logeval.clicks.estimation.beta_binomial import HYPER, fit_beta
from logeval.clicks.estimation.patterns import FoldedClicks
from logeval.errors import unknown_names

Smoothing = Literal["empirical-bayes", "pyclick", "none"]
MIN_ITEMS = 10
MIN_QUERIES = 5  # with fewer, a parameter that items share keeps its flat prior
Pair = tuple[Floats, Floats]  # pseudo-counts a, b


@dataclass(frozen=True)
class Prior:
    """Pseudo-counts per query, (Q,), and for queries never seen."""

    a: Floats
    b: Floats
    log_a: float
    log_b: float
    mean: Floats  # (Q,) the value of an item never seen
    log_mean: float  # the same for a query never seen
    caution: Floats  # (Q,) the share of the pseudo-counts that intervals rely on

    def of(self, index: Ints) -> tuple[Floats, Floats, Floats]:
        """a, b and caution of the items with those queries."""
        return self.a[index], self.b[index], self.caution[index]

    def rescaled(self, scale: Floats) -> Prior:
        """The prior with the values of unseen items times ``scale``, (Q,)."""
        mean = self.mean * scale
        return replace(self, mean=mean, log_mean=float(mean.mean()))


def check(smoothing: str) -> Smoothing:
    """The smoothing of that name."""
    if smoothing not in get_args(Smoothing):
        raise unknown_names("smoothing", [smoothing], get_args(Smoothing))
    return smoothing  # type: ignore[return-value]


def item_prior(
    smoothing: Smoothing, data: FoldedClicks, num: Floats, den: Floats, start: Prior | None = None
) -> Prior:
    """The prior of an item parameter with ``num`` successes in ``den`` trials, (I,) each.

    The search for the empirical one begins at ``start``.
    """
    if smoothing == "empirical-bayes":
        return _empirical_bayes(data, np.minimum(num, den), den, start)
    c = shared_prior(smoothing)
    pseudo = np.full(data.Q, c)
    if smoothing == "pyclick":
        return Prior(pseudo, pseudo, c, c, np.full(data.Q, 0.5), 0.5, np.ones(data.Q))
    totals = [sum_by(data.item_query, x, data.Q) for x in (num, den)]
    log_mean = float(num.sum() / max(den.sum(), 1.0))
    mean = np.divide(totals[0], totals[1], out=np.full(data.Q, log_mean), where=totals[1] > 0)
    return Prior(pseudo, pseudo, c, c, mean, log_mean, np.ones(data.Q))


def shared_prior(smoothing: Smoothing) -> float:
    """The pseudo-count, of both kinds, of a parameter that is not an item's."""
    return 0.0 if smoothing == "none" else 1.0


def flat_prior(smoothing: Smoothing, shape: tuple[int, ...]) -> Pair:
    """The pseudo-counts of such parameters of one query, which know nothing of other queries."""
    c = shared_prior(smoothing)
    return np.full(shape, c), np.full(shape, c)


def prior_over_queries(successes: Floats, trials: Floats) -> tuple[Pair, Floats]:
    """The Beta over queries (first axis) at each place, from the evidence of each query.

    And the share of it that intervals rely on, which is at most as much as all queries together
    say. One more query with one success in two trials keeps places of little evidence off 0 and 1.
    """
    G, shape = len(trials), trials.shape[1:]
    num, den = successes.reshape(G, -1), trials.reshape(G, -1)
    seen = den > 0.01  # less than that is rounding
    g, place = np.nonzero(seen)
    C = den.shape[1]
    group = np.concatenate([place, np.arange(C)])
    num = np.concatenate([num[g, place], np.ones(C)])
    den = np.concatenate([den[g, place], np.full(C, 2.0)])
    a, b = fit_beta(num, den, group, C)
    weaker = fit_beta(num, den, group, C, (a, b), HYPER)
    caution = np.minimum(weaker[0] + weaker[1], sum_by(group, den, C)) / (a + b)
    few = seen.sum(axis=0) < MIN_QUERIES
    a, b, caution = (np.where(few, 1.0, x).reshape(shape) for x in (a, b, caution))
    return (a, b), np.minimum(caution, 1.0)


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


def _empirical_bayes(data: FoldedClicks, num: Floats, den: Floats, start: Prior | None) -> Prior:
    seen = den > 0
    one = np.zeros(int(seen.sum()), dtype=np.int64)
    first = first_log = None
    if start is not None:
        first = (start.a, start.b)
        first_log = (np.array([start.log_a]), np.array([start.log_b]))
    log_a, log_b = (x[0] for x in fit_beta(num[seen], den[seen], one, 1, first_log))
    a, b = fit_beta(num[seen], den[seen], data.item_query[seen], data.Q, first)
    few = np.bincount(data.item_query[seen], minlength=data.Q) < MIN_ITEMS
    a, b = np.where(few, log_a, a), np.where(few, log_b, b)
    weaker = fit_beta(num[seen], den[seen], data.item_query[seen], data.Q, (a, b), HYPER)
    caution = np.where(few, 1.0, np.minimum((weaker[0] + weaker[1]) / (a + b), 1.0))
    log_mean = float(log_a / (log_a + log_b))
    return Prior(a, b, float(log_a), float(log_b), a / (a + b), log_mean, caution)


def cautious(x: Floats, variance: Floats, strength: Floats, caution: Floats) -> Floats:
    """The variance of a logit that relies on a share of its prior of strength a + b.

    What clicks say of x, all else unknown, is information 1 / variance - strength x (1 - x).
    """
    known = np.isfinite(variance) & (variance > 0)
    prior = strength * x * (1 - x)
    total = np.divide(1.0, variance, out=np.zeros(x.shape), where=known)
    rest = np.maximum(total - prior, 0.0) + caution * prior
    return np.divide(1.0, rest, out=variance.copy(), where=known & (rest > 0))
