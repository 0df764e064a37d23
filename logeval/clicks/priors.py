"""Priors: what is believed of an item that was hardly ever shown.

A prior is a pair of pseudo-counts (a, b) per query: a value is (num + a) / (den + a + b),
which maximises the likelihood penalised by a ln(x) + b ln(1 - x), and an item never seen
gets a / (a + b).

``empirical-bayes`` fits a Beta(a, b) to the items of each query by maximising the
beta-binomial likelihood of their counts (Minka's fixed point, "Estimating a Dirichlet
distribution", 2000, eq. 55), over all queries at once. A query with fewer than ``MIN_ITEMS``
items takes the Beta of the whole log. Parameters of positions get Beta(1, 1).
``pyclick`` is (1, 1) everywhere, ``none`` is (0, 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy.special import digamma

from logeval.arrays import Bools, Floats, Ints, sum_by
from logeval.clicks.patterns import Patterns
from logeval.errors import unknown_names

Smoothing = Literal["empirical-bayes", "pyclick", "none"]
MIN_ITEMS = 10
STRENGTH = 0.05, 10_000.0  # bounds on a + b
ITERATIONS = 500
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Prior:
    """Pseudo-counts per query, (Q,), and for queries never seen."""

    a: Floats
    b: Floats
    log_a: float
    log_b: float
    mean: Floats  # (Q,) the value of an item never seen
    log_mean: float  # the same for a query never seen


def check(smoothing: str) -> Smoothing:
    """The smoothing of that name."""
    if smoothing not in get_args(Smoothing):
        raise unknown_names("smoothing", [smoothing], get_args(Smoothing))
    return smoothing  # type: ignore[return-value]


def item_prior(smoothing: Smoothing, data: Patterns, num: Floats, den: Floats) -> Prior:
    """The prior of an item parameter with ``num`` successes in ``den`` trials, (I,) each."""
    if smoothing == "empirical-bayes":
        return _empirical_bayes(data, np.minimum(num, den), den)
    c = shared_prior(smoothing)
    pseudo = np.full(data.Q, c)
    if smoothing == "pyclick":
        return Prior(pseudo, pseudo, c, c, np.full(data.Q, 0.5), 0.5)
    totals = [sum_by(data.item_query, x, data.Q) for x in (num, den)]
    log_mean = float(num.sum() / max(den.sum(), 1.0))
    mean = np.divide(totals[0], totals[1], out=np.full(data.Q, log_mean), where=totals[1] > 0)
    return Prior(pseudo, pseudo, c, c, mean, log_mean)


def shared_prior(smoothing: Smoothing) -> float:
    """The pseudo-count, of both kinds, of a parameter that is not an item's."""
    return 0.0 if smoothing == "none" else 1.0


def _empirical_bayes(data: Patterns, num: Floats, den: Floats) -> Prior:
    seen = den > 0
    one = np.zeros(int(seen.sum()), dtype=np.int64)
    log_a, log_b = (x[0] for x in fit_beta(num[seen], den[seen], one, 1))
    a, b = fit_beta(num[seen], den[seen], data.item_query[seen], data.Q)
    few = np.bincount(data.item_query[seen], minlength=data.Q) < MIN_ITEMS
    a, b = np.where(few, log_a, a), np.where(few, log_b, b)
    return Prior(a, b, float(log_a), float(log_b), a / (a + b), float(log_a / (log_a + log_b)))


def fit_beta(num: Floats, den: Floats, group: Ints, G: int) -> tuple[Floats, Floats]:
    """Beta(a, b) of each group from its items' counts, by marginal likelihood."""

    def total(x: Floats) -> Floats:
        return sum_by(group, x, G)

    mean = np.clip(
        np.divide(total(num), total(den), out=np.full(G, 0.5), where=total(den) > 0), 1e-4, 0.9999
    )
    a, b = 2.0 * mean, 2.0 * (1.0 - mean)
    active: Bools = total(np.ones_like(num)) > 0
    for _ in range(ITERATIONS):
        ag, bg = a[group], b[group]
        up_a = total(digamma(num + ag) - digamma(ag))
        up_b = total(digamma(den - num + bg) - digamma(bg))
        down = np.maximum(total(digamma(den + ag + bg) - digamma(ag + bg)), 1e-300)
        new_a, new_b = np.maximum(a * up_a / down, 1e-6), np.maximum(b * up_b / down, 1e-6)
        scale = np.clip(new_a + new_b, *STRENGTH) / (new_a + new_b)
        new_a, new_b = new_a * scale, new_b * scale
        change = np.abs(new_a - a) / a + np.abs(new_b - b) / b
        a, b = np.where(active, new_a, a), np.where(active, new_b, b)
        active &= change > TOLERANCE
        if not active.any():
            break
    return a, b
