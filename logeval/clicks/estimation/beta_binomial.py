"""The Betas behind groups of proportions, by the beta-binomial likelihood of their counts.

The proportions of a group g have a Beta of strength a + b = kappa_g, the logit of whose mean may
depend on covariates X: level_g + X slope_g. Several groups may share their slopes.

Minka: Estimating a Dirichlet distribution (2000), with Newton steps in (level, ln kappa) of
length at most one, then in the slopes, along which the levels follow. Counts need not be whole.
Slopes have the prior N(0, 1), which is wide for covariates that are logits themselves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from logeval.running.arrays import Floats, Ints, sum_by
from logeval.running.kernels import njit

STRENGTH = 0.05, 10_000.0  # bounds on a + b
FAR = 12.0  # the largest level
ITERATIONS = 50
TOLERANCE = 1e-5
SLOPE_STEPS, SLOPE_TOLERANCE = 25, 1e-4


class Betas(NamedTuple):
    """The Beta of each group, (G,)."""

    level: Floats  # the logit of the mean where the covariate is 0
    strength: Floats  # a + b
    slope: Floats  # (G, C), of C covariates

    def of(self, group: Ints, X: Floats) -> tuple[Floats, Floats]:
        """The pseudo-counts a and b of members of those groups with covariates X, (n, C)."""
        mean = expit(self.level[group] + (self.slope[group] * X).sum(axis=1))
        return self.strength[group] * mean, self.strength[group] * (1.0 - mean)


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
def derivatives(
    num: Floats, den: Floats, tilt: Floats, level: float, strength: float, eta: Floats, d: Floats
) -> None:
    """Derivatives of the likelihood of one group, whose members' logits are level + tilt.

    In the logit of the mean of each member: the first and second into ``eta`` (n, 2). In the level
    and ln kappa: the gradients, and the second derivatives (level, level), (kappa, kappa),
    (level, kappa) into ``d`` (5,).
    """
    d[:] = 0.0
    for i in range(len(num)):
        s, n = num[i], den[i]
        mean = 1.0 / (1.0 + np.exp(-(level + tilt[i])))
        mean = min(max(mean, 1e-9), 1.0 - 1e-9)
        a, b = strength * mean, strength * (1.0 - mean)
        down = digamma(strength) - digamma(n + strength)
        both = trigamma(strength) - trigamma(n + strength)
        up_a, up_b = digamma(s + a) - digamma(a) + down, digamma(n - s + b) - digamma(b) + down
        h_a, h_b = trigamma(s + a) - trigamma(a) + both, trigamma(n - s + b) - trigamma(b) + both
        move = strength * mean * (1.0 - mean)  # da / dlevel
        first = move * (up_a - up_b)
        second = move * move * (h_a + h_b - 2.0 * both) + first * (1.0 - 2.0 * mean)
        eta[i, 0], eta[i, 1] = first, second
        d[0] += first
        d[1] += a * up_a + b * up_b
        d[2] += second
        d[3] += a * a * h_a + 2.0 * a * b * both + b * b * h_b + a * up_a + b * up_b
        d[4] += move * (a * (h_a - both) + b * (both - h_b)) + first


@njit(cache=True, nogil=True)
def fit_groups(
    num: Floats,
    den: Floats,
    tilt: Floats,
    bounds: Ints,
    level: Floats,
    strength: Floats,
    eta: Floats,
) -> None:
    """Level and strength of each group, of rows bounds[g]:bounds[g + 1], from and into these."""
    d = np.zeros(5)
    for g in range(len(level)):
        rows = slice(bounds[g], bounds[g + 1])
        if bounds[g + 1] == bounds[g]:
            continue
        for _ in range(ITERATIONS):
            derivatives(num[rows], den[rows], tilt[rows], level[g], strength[g], eta[rows], d)
            det = d[2] * d[3] - d[4] * d[4]
            if d[2] < 0.0 and det > 0.0:
                step_level = (d[4] * d[1] - d[3] * d[0]) / det
                step_kappa = (d[4] * d[0] - d[2] * d[1]) / det
            else:  # not concave: along each by its own curvature
                step_level = d[0] / max(abs(d[2]), 1e-9)
                step_kappa = d[1] / max(abs(d[3]), 1e-9)
            step_level = min(max(step_level, -1.0), 1.0)
            new = strength[g] * np.exp(min(max(step_kappa, -1.0), 1.0))
            new = min(max(new, STRENGTH[0]), STRENGTH[1])
            change = abs(step_level) + abs(new - strength[g]) / strength[g]
            level[g] = min(max(level[g] + step_level, -FAR), FAR)
            strength[g] = new
            if change <= TOLERANCE:
                break


def fit_betas(
    num: Floats,
    den: Floats,
    group: Ints,
    G: int,
    X: Floats | None = None,
    slopes: Ints | None = None,
    start: Betas | None = None,
) -> Betas:
    """The Betas of all groups from the successes and trials of their members.

    ``slopes`` says which groups share their slopes, (G,); without covariates there are none.
    """
    order = np.argsort(group, kind="stable")
    num, den, group = num[order], den[order], group[order]
    X = np.zeros((len(num), 0)) if X is None else X[order]
    slopes = np.zeros(G, dtype=np.int64) if slopes is None else slopes
    bounds = np.searchsorted(group, np.arange(G + 1))
    if start is None:
        trials, successes = sum_by(group, den, G), sum_by(group, num, G)
        mean = np.divide(successes, trials, out=np.full(G, 0.5), where=trials > 0)
        mean = np.clip(mean, 1e-4, 1 - 1e-4)
        start = Betas(np.log(mean / (1 - mean)), np.full(G, 2.0), np.zeros((G, X.shape[1])))
    level, strength, slope = (np.array(v, dtype=np.float64) for v in start)
    eta = np.zeros((len(num), 2))
    for _ in range(SLOPE_STEPS):
        tilt = (slope[group] * X).sum(axis=1)
        fit_groups(num, den, tilt, bounds, level, strength, eta)
        step, follow = _slope_step(X, eta, group, slopes, slope)
        level += (step[slopes] * follow).sum(axis=1)
        slope += step[slopes]
        if np.abs(step).max(initial=0.0) < SLOPE_TOLERANCE:
            break
    return Betas(level, strength, slope)


def _slope_step(
    X: Floats, eta: Floats, group: Ints, slopes: Ints, slope: Floats
) -> tuple[Floats, Floats]:
    """A Newton step of the slopes, (S, C), and how levels follow a change of each slope, (G, C)."""
    (G, C), S = slope.shape, int(slopes.max(initial=0)) + 1
    curve = sum_by(group, eta[:, 1], G)
    cross = np.stack([sum_by(group, eta[:, 1] * x, G) for x in X.T], axis=1) if C else slope
    follow = -np.divide(cross, curve[:, None], out=np.zeros((G, C)), where=curve[:, None] < 0)
    now = np.zeros((S, C))
    now[slopes] = slope
    gradient, second = -now, np.tile(-np.eye(C), (S, 1, 1))
    for c in range(C):
        gradient[:, c] += sum_by(slopes[group], eta[:, 0] * X[:, c], S)
        for d in range(C):
            second[:, c, d] += sum_by(slopes[group], eta[:, 1] * X[:, c] * X[:, d], S)
            second[:, c, d] += sum_by(slopes, cross[:, c] * follow[:, d], S)
    values, vectors = np.linalg.eigh(second)  # uphill even where it is not concave
    along = np.einsum("sji,sj->si", vectors, gradient) / np.maximum(np.abs(values), 1.0)
    return np.clip(np.einsum("sij,sj->si", vectors, along), -0.5, 0.5), follow
