"""The standard normal distribution for kernels: P(Z <= x) and its inverse."""

from __future__ import annotations

import math

from logeval.running.kernels import njit_views


@njit_views
def cdf(x):
    """P(Z <= x)."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@njit_views
def near_quantile(p):
    """The quantile to 4.5e-4 by a rational function (Abramowitz and Stegun, 26.2.23)."""
    t = math.sqrt(-2.0 * math.log(min(p, 1.0 - p)))
    x = (
        t - (2.515517 + t * (0.802853 + t * 0.010328))
        / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
    )  # fmt: skip
    return -x if p < 0.5 else x


@njit_views
def quantile(p):
    """The x with P(Z <= x) = p, 0 < p < 1: two steps of Halley's method, which cube the error."""
    tail = min(p, 1.0 - p)
    x = near_quantile(tail)
    for _ in range(2):
        e = (cdf(x) - tail) * math.sqrt(2.0 * math.pi) * math.exp(0.5 * x * x)
        x -= e / (1.0 + 0.5 * x * e)
    return x if p < 0.5 else -x
