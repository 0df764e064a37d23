"""Of n users, how many: the expected number, or one drawn from a uniform number."""

from __future__ import annotations

import math

import numpy as np

from logeval.running.arrays import Floats
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
