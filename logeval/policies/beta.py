"""The Beta distribution for kernels: F(x), its survival 1 - F(x), and the hazard -log F(x)."""

from __future__ import annotations

import math

from logeval.kernels import njit_views

LARGEST = 700.0  # of the hazards: e^-700 is as good as 0


@njit_views
def continued_fraction(a, b, x):
    """The continued fraction of the incomplete beta function (Lentz's method)."""
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    value = d
    for m in range(1, 200_000):
        for odd in range(2):
            if odd:
                factor = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
            else:
                factor = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
            d = 1.0 + factor * d
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = 1.0 + factor / c
            c = c if abs(c) > tiny else tiny
            value *= d * c
        if abs(d * c - 1.0) < 1e-15:
            break
    return value


@njit_views
def log_density(a, b, x):
    """log of x^a (1-x)^b / B(a, b)."""
    log_b = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return a * math.log(x) + b * math.log1p(-x) + log_b


@njit_views
def survival(a, b, x):
    """(F(x), 1 - F(x)) of Beta(a, b), the smaller one to full relative precision."""
    if x <= 0.0:
        return 0.0, 1.0
    if x >= 1.0:
        return 1.0, 0.0
    density = math.exp(log_density(a, b, x))
    if x < (a + 1.0) / (a + b + 2.0):
        F = min(density * continued_fraction(a, b, x) / a, 1.0)
        return F, 1.0 - F
    Q = min(density * continued_fraction(b, a, 1.0 - x) / b, 1.0)
    return 1.0 - Q, Q


@njit_views
def hazard(F, Q):
    """-log F, at most ``LARGEST``."""
    if F > 0.5:
        return -math.log1p(-Q)
    return min(-math.log(max(F, 1e-305)), LARGEST)
