"""Of n users, how many: the expected number, or one drawn from a uniform number.

The Betas behind groups of proportions, by the beta-binomial likelihood of their counts.

The proportions of a group g have a Beta of strength a + b = kappa_g, the logit of whose mean may
depend on covariates X: level_g + X slope_g. Several groups may share their slopes.

Minka: Estimating a Dirichlet distribution (2000), with Newton steps in (level, ln kappa) of
length at most one, then in the slopes, along which the levels follow. Counts need not be whole.
Slopes have the prior N(0, 1), which is wide for covariates that are logits themselves.

The Betas behind groups of proportions as unknowns: a random walk over what they could be.

The posterior of (level, kappa) of each group and of the slopes (``beta_binomial``), given whole
counts, by Metropolis' rule, with the density kappa^-5/2 in (a, b) as in Gelman et al., Bayesian
Data Analysis (2013), section 5.3: uniform in the mean and in kappa^-1/2. The proportions
themselves are integrated out. Few proportions, or ones that are hardly known, cannot tell how
much they differ; intervals that took one Beta as known would be too narrow.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from logeval.running.arrays import Bools, Floats, Ints, sum_by
from logeval.running.kernels import njit


@njit(cache=True, nogil=True)
def binomial(n: float, p: float, u: float) -> float:
    """A Binomial(n, p) number from a uniform one: the probabilities outward from the mode."""
    if p <= 0.0 or n <= 0.0:
        return 0.0
    if p >= 1.0:
        return n
    if n == 1.0:
        return 1.0 if u < p else 0.0
    mode = float(math.floor((n + 1.0) * p))
    log_p = math.lgamma(n + 1.0) - math.lgamma(mode + 1.0) - math.lgamma(n - mode + 1.0)
    at_up = math.exp(log_p + mode * math.log(p) + (n - mode) * math.log1p(-p))
    at_down, up, down, odds = at_up, mode, mode, p / (1.0 - p)
    u -= at_up
    while u >= 0.0 and (up < n or down > 0.0):
        if up < n:
            at_up *= (n - up) / (up + 1.0) * odds
            up += 1.0
            u -= at_up
            if u < 0.0:
                return up
        if down > 0.0:
            at_down *= down / ((n - down + 1.0) * odds)
            down -= 1.0
            u -= at_down
            if u < 0.0:
                return down
        if at_up + at_down < 1e-18:  # what is left of u is rounding
            break
    return mode


@njit(cache=True, nogil=True)
def share_of(n: float, p: float, u: float) -> float:
    """n p for u below 0, else a Binomial(n, p) number."""
    return n * p if u < 0.0 else binomial(n, p, u)


@njit(cache=True, nogil=True)
def binomials(n: Floats, p: Floats, u: Floats, out: Floats) -> None:
    """``binomial`` of each."""
    for i in range(len(n)):
        out[i] = binomial(n[i], p[i], u[i])


class Split:
    """How many of n, with probability p: as expected, or drawn where there is a generator."""

    def __init__(self, rng: np.random.Generator | None = None) -> None:
        self.rng = rng

    def __call__(self, n: Floats, p: Floats) -> Floats:
        """Of arrays."""
        if self.rng is None:
            return n * p
        out = np.empty(len(n))
        binomials(n, np.broadcast_to(p, n.shape).astype(np.float64), self.rng.random(len(n)), out)
        return out


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


ACCEPTED = 0.4  # the share of moves to aim at
START = 3.0, 30.0  # the largest level and strength to start at: walks from the ends are long


@njit(cache=True, nogil=True)
def log_rising(a: float, n: float) -> float:
    """ln of a (a + 1) ... (a + n - 1), for a whole n."""
    if n > 20.0:
        return math.lgamma(a + n) - math.lgamma(a)
    product = 1.0
    for j in range(int(n)):
        product *= a + j
    return math.log(product)


@njit(cache=True, nogil=True)
def add_likelihood(
    num: Floats,
    den: Floats,
    tilt: Floats,
    bounds: Ints,
    level: Floats,
    strength: Floats,
    out: Floats,
) -> None:
    """The beta-binomial ln-likelihood of the rows bounds[g]:bounds[g + 1] of each group.

    The logit of the mean of a row is that of its group and ``tilt``; its strength is its own.
    """
    for g in range(len(level)):
        total = 0.0
        for i in range(bounds[g], bounds[g + 1]):
            if den[i] > 0.0:
                kappa = strength[i]
                mean = 1.0 / (1.0 + math.exp(-(level[g] + tilt[i])))
                mean = min(max(mean, 1e-9), 1.0 - 1e-9)
                total += log_rising(kappa * mean, num[i])
                total += log_rising(kappa * (1.0 - mean), den[i] - num[i])
                total -= log_rising(kappa, den[i])
        out[g] = total


class BetaWalk:
    """Betas that wander; those of groups that are not ``free`` stay as they are.

    Members of a group are rows bounds[g]:bounds[g + 1] with covariates X; ``slopes`` says which
    groups share their slopes. How alike members are may depend on their covariates too: the
    logarithm of the strength has a slope in their sum, which starts at 0, with prior N(0, 1/4).
    """

    def __init__(
        self, betas: Betas, bounds: Ints, free: Bools, X: Floats, slopes: Ints | None = None
    ) -> None:
        G, C = len(free), X.shape[1]
        self._bounds, self._free, self._X, self._sum = bounds, free, X, X.sum(axis=1)
        self._slopes = np.zeros(G, dtype=np.int64) if slopes is None else slopes
        self._group = np.repeat(np.arange(G), np.diff(bounds))
        far = np.where(free, START[0], 0.99 * FAR)
        most = np.where(free, START[1], 0.99 * STRENGTH[1])
        self._betas = Betas(
            np.clip(betas.level, -far, far),
            np.clip(betas.strength, 1.01 * STRENGTH[0], most),
            np.concatenate([betas.slope, np.zeros((G, 1))], axis=1),
        )
        S = int(self._slopes.max(initial=0)) + 1
        self._width = [
            np.full(G, 0.5),
            np.full(G, 1.0),
            *(np.full(S, 0.2) for _ in range(C + (C > 0))),
        ]
        self._moves = 0

    @property
    def pair(self) -> tuple[Floats, Floats]:
        """The pseudo-counts of every row."""
        mean = expit(self._betas.level[self._group] + self._tilt(self._betas))
        strength = self._strength(self._betas)
        return strength * mean, strength * (1.0 - mean)

    def move(self, num: Floats, den: Floats, rng: np.random.Generator, adapt: bool) -> None:
        """One step of each level, each strength and each slope, given counts."""
        self._moves += 1
        now = self._posterior(self._betas, num, den)
        for part, width in enumerate(self._width):
            step = width * rng.standard_normal(len(width))
            new = self._moved(part, step)
            there = self._posterior(new, num, den)
            gain = there - now
            if part > 1:  # all groups that share the slope move, or none; it has its own N(0, 1)
                gain = sum_by(self._slopes, np.where(self._free, gain, 0.0), len(width))
                before, after = np.zeros(len(width)), np.zeros(len(width))
                before[self._slopes[self._free]] = self._betas.slope[self._free, part - 2]
                after[self._slopes[self._free]] = new.slope[self._free, part - 2]
                gain += (0.5 if part < len(self._width) - 1 else 2.0) * (before**2 - after**2)
            yes = np.log(rng.random(len(width))) < gain
            if adapt:
                self._width[part] = width * np.exp((yes - ACCEPTED) / math.sqrt(self._moves))
            taken = yes[self._slopes] if part > 1 else yes
            self._betas = Betas(
                np.where(taken, new.level, self._betas.level),
                np.where(taken, new.strength, self._betas.strength),
                np.where(taken[:, None], new.slope, self._betas.slope),
            )
            now = np.where(taken, there, now)

    def _moved(self, part: int, step: Floats) -> Betas:
        level, strength, slope = self._betas
        if part == 0:
            return Betas(level + step * self._free, strength, slope)
        if part == 1:
            return Betas(level, strength * np.exp(step * self._free), slope)
        new = slope.copy()
        new[:, part - 2] += step[self._slopes] * self._free
        return Betas(level, strength, new)

    def _posterior(self, betas: Betas, num: Floats, den: Floats) -> Floats:
        """By group, up to a constant; slopes have their prior elsewhere."""
        out = np.empty(len(betas.level))
        tilt, strength = self._tilt(betas), self._strength(betas)
        add_likelihood(num, den, tilt, self._bounds, betas.level, strength, out)
        mean = 1.0 / (1.0 + np.exp(-betas.level))
        out += np.log(mean * (1.0 - mean)) - 0.5 * np.log(betas.strength)
        inside = (betas.strength >= STRENGTH[0]) & (betas.strength <= STRENGTH[1])
        return np.where(inside & (np.abs(betas.level) < FAR), out, -np.inf)

    def _tilt(self, betas: Betas) -> Floats:
        return (betas.slope[self._group, :-1] * self._X).sum(axis=1)

    def _strength(self, betas: Betas) -> Floats:
        """Of every row."""
        tilt = np.clip(betas.slope[self._group, -1] * self._sum, -6.0, 6.0)
        return betas.strength[self._group] * np.exp(tilt)
