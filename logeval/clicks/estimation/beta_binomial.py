"""The Beta(a, b) behind several proportions, by the beta-binomial likelihood of their counts.

Minka: Estimating a Dirichlet distribution (2000). Newton steps in (ln a, ln b), of length at
most one; where the likelihood is not concave, the fixed point
a <- a sum[psi(num + a) - psi(a)] / sum[psi(den + a + b) - psi(a + b)]. Counts need not be whole.

Few proportions, or ones that are hardly known, cannot tell how much they differ, and then the
likelihood is often the larger the stronger the prior, as if they did not differ at all. That is
good for values, which are then all alike, but not for their intervals. For these the strength
a + b gets a prior of its own: the density (a + b)^-HYPER of (a, b), with 5/2 as in Gelman et al.,
Bayesian Data Analysis (2013), section 5.3.
"""

from __future__ import annotations

import numpy as np

from logeval.arrays import Floats, Ints
from logeval.kernels import njit

STRENGTH = 0.05, 10_000.0  # bounds on a + b
SMALLEST = 1e-6  # of a and of b
ITERATIONS = 50
TOLERANCE = 1e-5
HYPER = 2.5


@njit(cache=True, nogil=True)
def digamma(x: float) -> float:
    """psi(x) for x > 0: psi(x) = psi(x + 1) - 1 / x up to 8, then the asymptotic series."""
    shift = 0.0
    while x < 8.0:
        shift -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132)))))
    return shift + np.log(x) - 0.5 / x - series


@njit(cache=True, nogil=True)
def trigamma(x: float) -> float:
    """psi'(x) for x > 0, likewise."""
    shift = 0.0
    while x < 8.0:
        shift += 1.0 / (x * x)
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y * (1 / 30 - y * (5 / 66)))))
    return shift + (1.0 + 0.5 / x + series) / x


@njit(cache=True, nogil=True)
def fit_one(num: Floats, den: Floats, a: float, b: float, hyper: float) -> tuple[float, float]:
    """Beta(a, b) of one group, from a start."""
    for _ in range(ITERATIONS):
        up_a, up_b, down, h_a, h_b, both = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        psi_a, psi_b, psi = digamma(a), digamma(b), digamma(a + b)
        tri_a, tri_b, tri = trigamma(a), trigamma(b), trigamma(a + b)
        for x, n in zip(num, den):  # noqa: B905 - numba has no strict
            up_a += digamma(x + a) - psi_a
            up_b += digamma(n - x + b) - psi_b
            down += digamma(n + a + b) - psi
            h_a += trigamma(x + a) - tri_a
            h_b += trigamma(n - x + b) - tri_b
            both += tri - trigamma(n + a + b)
        share = a / (a + b)
        pull = hyper * share * (1.0 - share)  # minus the second derivative of hyper ln(a + b)
        slope_a = a * (up_a - down) - hyper * share  # in ln a, ln b
        slope_b = b * (up_b - down) - hyper * (1.0 - share)
        h_aa = a * a * (h_a + both) + a * (up_a - down) - pull
        h_bb = b * b * (h_b + both) + b * (up_b - down) - pull
        h_ab = a * b * both + pull
        det = h_aa * h_bb - h_ab * h_ab
        if h_aa < 0.0 and det > 0.0:
            step_a = (h_ab * slope_b - h_bb * slope_a) / det
            step_b = (h_ab * slope_a - h_aa * slope_b) / det
        else:
            down += hyper / (a + b)
            step_a = np.log(up_a / down) if up_a > 0.0 else -1.0
            step_b = np.log(up_b / down) if up_b > 0.0 else -1.0
        new_a = a * np.exp(min(max(step_a, -1.0), 1.0))
        new_b = b * np.exp(min(max(step_b, -1.0), 1.0))
        scale = min(max(new_a + new_b, STRENGTH[0]), STRENGTH[1]) / (new_a + new_b)
        new_a, new_b = max(new_a * scale, SMALLEST), max(new_b * scale, SMALLEST)
        change = abs(new_a - a) / a + abs(new_b - b) / b
        a, b = new_a, new_b
        if change <= TOLERANCE:
            break
    return a, b


@njit(cache=True, nogil=True)
def fit_groups(num: Floats, den: Floats, bounds: Ints, a: Floats, b: Floats, hyper: float) -> None:
    """``fit_one`` for the rows bounds[g]:bounds[g + 1] of each group, from and into (a, b)."""
    for g in range(len(a)):
        rows = slice(bounds[g], bounds[g + 1])
        if bounds[g + 1] > bounds[g]:
            a[g], b[g] = fit_one(num[rows], den[rows], a[g], b[g], hyper)


def fit_beta(
    num: Floats,
    den: Floats,
    group: Ints,
    G: int,
    start: tuple[Floats, Floats] | None = None,
    hyper: float = 0.0,
) -> tuple[Floats, Floats]:
    """Beta(a, b) of each group from the successes and trials of its members."""
    order = np.argsort(group, kind="stable")
    num, den = num[order], den[order]
    bounds = np.searchsorted(group[order], np.arange(G + 1))
    if start is None:
        trials = np.add.reduceat(np.append(den, 0.0), bounds[:-1]) * (np.diff(bounds) > 0)
        successes = np.add.reduceat(np.append(num, 0.0), bounds[:-1])
        mean = np.divide(successes, trials, out=np.full(G, 0.5), where=trials > 0)
        mean = np.clip(mean, 1e-4, 1 - 1e-4)
        start = 2.0 * mean, 2.0 * (1.0 - mean)
    a, b = (x.astype(np.float64) for x in start)
    fit_groups(num, den, bounds, a, b, hyper)
    return a, b
