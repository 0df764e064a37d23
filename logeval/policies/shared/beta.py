"""The Beta distribution for kernels: F(x), 1 - F(x), the density, and the hazard -log F(x)."""

from __future__ import annotations

import math

from logeval.running.kernels import njit_views

LARGEST = 700.0  # of the hazards: e^-700 is as good as 0


@njit_views
def continued_fraction(a, b, x):
    """The continued fraction 1 / (1 + d_1 / (1 + d_2 / ...)) of the incomplete beta function.

    Its convergents P_n / Q_n with P_n = P_{n-1} + d_n P_{n-2}, likewise Q, scaled to Q_n = 1 after
    every fourth: a division takes longer than all else. It is used where x is below the mean, or
    nearly so; there all Q_n are positive.
    """
    P, Q, P_odd, Q_odd = 1.0, 1.0, 1.0, 1.0 - (a + b) * x / (a + 1.0)
    value = 0.0
    for m in range(1, 200_000):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        P, Q = P_odd + even * P, Q_odd + even * Q
        P_odd, Q_odd = P + odd * P_odd, Q + odd * Q_odd
        if m % 2 == 0:
            scale = 1.0 / Q_odd
            P, Q, P_odd, Q_odd = P * scale, Q * scale, P_odd * scale, 1.0
            if abs(P_odd - value) < 1e-15 * P_odd:
                break
            value = P_odd
    return P_odd / Q_odd


@njit_views
def log_beta(a, b):
    """log B(a, b)."""
    return -(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b))


@njit_views
def distribution(a, b, log_B, x):
    """F(x), 1 - F(x), the smaller one to full relative precision, and x^a (1-x)^b / B(a, b)."""
    if x <= 0.0:
        return 0.0, 1.0, 0.0
    if x >= 1.0:
        return 1.0, 0.0, 0.0
    density = math.exp(a * math.log(x) + b * math.log1p(-x) - log_B)
    if x < (a + 1.0) / (a + b + 2.0):
        F = min(density * continued_fraction(a, b, x) / a, 1.0)
        return F, 1.0 - F, density
    Q = min(density * continued_fraction(b, a, 1.0 - x) / b, 1.0)
    return 1.0 - Q, Q, density


@njit_views
def survival(a, b, x):
    """F(x) and 1 - F(x) of Beta(a, b)."""
    F, Q, _ = distribution(a, b, log_beta(a, b), x)
    return F, Q


@njit_views
def hazard(F, Q):
    """-log F, at most ``LARGEST``."""
    if F > 0.5:
        return -math.log1p(-Q)
    return min(-math.log(max(F, 1e-305)), LARGEST)
