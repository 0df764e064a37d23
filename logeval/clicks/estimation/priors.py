"""Priors: what is believed of an item that was hardly ever shown.

A prior is a pair of pseudo-counts (a, b) per query: a value is (num + a) / (den + a + b),
which maximises the likelihood penalised by a ln(x) + b ln(1 - x), and an item never seen
gets a / (a + b).

``empirical-bayes`` fits a Beta(a, b) to the items of each query by maximising the
beta-binomial likelihood of their counts (Minka, "Estimating a Dirichlet distribution", 2000),
over all queries at once. A query with fewer than ``MIN_ITEMS``
items takes the Beta of the whole log. Parameters of positions get Beta(1, 1).
``pyclick`` is (1, 1) everywhere, ``none`` is (0, 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy.special import digamma, zeta

from logeval.arrays import Bools, Floats, Ints, sum_by
from logeval.clicks.estimation.patterns import Patterns
from logeval.errors import unknown_names

Smoothing = Literal["empirical-bayes", "pyclick", "none"]
MIN_ITEMS = 10
STRENGTH = 0.05, 10_000.0  # bounds on a + b
ITERATIONS = 50
TOLERANCE = 1e-5


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


def item_prior(
    smoothing: Smoothing, data: Patterns, num: Floats, den: Floats, start: Prior | None = None
) -> Prior:
    """The prior of an item parameter with ``num`` successes in ``den`` trials, (I,) each.

    The search for the empirical one begins at ``start``.
    """
    if smoothing == "empirical-bayes":
        return _empirical_bayes(data, np.minimum(num, den), den, start)
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


def _empirical_bayes(data: Patterns, num: Floats, den: Floats, start: Prior | None) -> Prior:
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
    return Prior(a, b, float(log_a), float(log_b), a / (a + b), float(log_a / (log_a + log_b)))


def fit_beta(
    num: Floats,
    den: Floats,
    group: Ints,
    G: int,
    start: tuple[Floats, Floats] | None = None,
) -> tuple[Floats, Floats]:
    """Beta(a, b) of each group from its items' counts, by marginal likelihood.

    Newton steps in (ln a, ln b), of length at most one; where the likelihood is not concave,
    the fixed point a <- a sum[psi(num + a) - psi(a)] / sum[psi(den + a + b) - psi(a + b)].
    """

    def total(x: Floats) -> Floats:
        return sum_by(group, x, G)

    trials = total(den)
    mean = np.divide(total(num), trials, out=np.full(G, 0.5), where=trials > 0)
    mean = np.clip(mean, 1e-4, 1 - 1e-4)
    a, b = start if start is not None else (2.0 * mean, 2.0 * (1.0 - mean))
    active: Bools = total(np.ones_like(num)) > 0
    for _ in range(ITERATIONS):
        on = active[group]
        x, n, g = num[on], den[on], group[on]
        ag, bg = a[g], b[g]

        def sums(v: Floats, g: Ints = g) -> Floats:
            return sum_by(g, v, G)

        up_a, up_b = sums(digamma(x + ag) - digamma(ag)), sums(digamma(n - x + bg) - digamma(bg))
        down = sums(digamma(n + ag + bg) - digamma(ag + bg))
        both = sums(_trigamma(ag + bg) - _trigamma(n + ag + bg))
        slope_a, slope_b = a * (up_a - down), b * (up_b - down)  # in ln a, ln b
        h_aa = a * a * (sums(_trigamma(x + ag) - _trigamma(ag)) + both) + slope_a
        h_bb = b * b * (sums(_trigamma(n - x + bg) - _trigamma(bg)) + both) + slope_b
        h_ab = a * b * both
        det = h_aa * h_bb - h_ab * h_ab
        concave = (h_aa < 0) & (det > 0)
        safe = np.where(concave, det, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            fixed_a, fixed_b = np.log(up_a / down), np.log(up_b / down)
        step_a = np.where(concave, (h_ab * slope_b - h_bb * slope_a) / safe, fixed_a)
        step_b = np.where(concave, (h_ab * slope_a - h_aa * slope_b) / safe, fixed_b)
        step_a, step_b = (np.clip(np.nan_to_num(s, nan=0.0), -1.0, 1.0) for s in (step_a, step_b))
        new_a, new_b = a * np.exp(step_a), b * np.exp(step_b)
        scale = np.clip(new_a + new_b, *STRENGTH) / (new_a + new_b)
        new_a, new_b = np.maximum(new_a * scale, 1e-6), np.maximum(new_b * scale, 1e-6)
        change = np.abs(new_a - a) / a + np.abs(new_b - b) / b
        a, b = np.where(active, new_a, a), np.where(active, new_b, b)
        active = active & (change > TOLERANCE)
        if not active.any():
            break
    return a, b


def _trigamma(x: Floats) -> Floats:
    return zeta(2.0, x)
