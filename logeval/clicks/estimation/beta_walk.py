"""The Betas behind groups of proportions as unknowns: a random walk over what they could be.

The posterior of (level, kappa) of each group and of the slopes (``beta_binomial``), given whole
counts, by Metropolis' rule, with the density kappa^-5/2 in (a, b) as in Gelman et al., Bayesian
Data Analysis (2013), section 5.3: uniform in the mean and in kappa^-1/2. The proportions
themselves are integrated out. Few proportions, or ones that are hardly known, cannot tell how
much they differ; intervals that took one Beta as known would be too narrow.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit

from logeval.clicks.estimation.beta_binomial import FAR, STRENGTH, Betas
from logeval.running.arrays import Bools, Floats, Ints, sum_by
from logeval.running.kernels import njit

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
