"""The K largest of L independent draws theta_i ~ Beta(a_i, b_i), without making all of them.

theta_i = F_i^{-1}(u_i) for a uniform u_i, with F_i the distribution function. The list is that of
all exact draws; two bounds save most of them.

- At a level x, the same for all items, theta_i > x exactly if u_i > F_i(x), and F_i(x) changes only
  with a_i and b_i. If K or more are above the level, the largest are among them. The level is set
  so that about K + 3 sqrt(K) are, and set anew when there are fewer than K or far more.
- An approximate quantile with a bound on its error orders most of the others. Only draws that it
  cannot tell apart are made exactly.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from logeval.policies.shared import normal
from logeval.policies.shared.beta import distribution, log_beta
from logeval.policies.shared.memory import floats, ints
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_views

NEAR = 1e-3  # the last step of Halley's method, in sd; it leaves about 1e-9 of them
EXACT = 1024  # recurrences between two exact evaluations of F
TINY = 1e-250  # a density below this would vanish


class Betas(NamedTuple):
    """Posteriors, the level, and the draws of a step; at level 0 every item is drawn."""

    a: Floats = floats("L", fill=1.0)
    b: Floats = floats("L", fill=1.0)
    F: Floats = floats("L")  # F_i(level)
    density: Floats = floats("L")  # level (1 - level) F_i'(level)
    level: Floats = floats(1)
    above: Ints = ints("L", shared=True)  # the items above the level
    theta: Floats = floats("L", shared=True)  # their draws
    error: Floats = floats("L", shared=True)  # and bounds on the errors of these


@njit_views
def near_quantile(a, b, u):
    """The quantile for a, b >= 1 by Abramowitz and Stegun, 26.5.22, and a bound on its error.

    Exact if a or b is 1. The bound was fitted to the errors found, which reach nine tenths of it;
    a test looks for larger ones. Where none is known it is infinite.
    """
    if a == 1.0:
        return -math.expm1(math.log1p(-u) / b), 0.0
    if b == 1.0:
        return u ** (1.0 / a), 0.0
    z = -normal.near_quantile(max(u, 1e-300))
    s, t = 1.0 / (2.0 * a - 1.0), 1.0 / (2.0 * b - 1.0)
    r, zz = 0.5 * (s + t), z * z
    m = (zz - 3.0) / 6.0
    w = z * math.sqrt(max(r + m * r * r, 0.0)) - (t - s) * (m + (5.0 - 4.0 * r) / 6.0)
    x = a / (a + b * math.exp(2.0 * min(w, 300.0)))
    x = min(max(x, 1e-15), 1.0 - 1e-15)
    least = min(a, b)
    if least < 2.0 or abs(z) > 4.5:
        return x, math.inf
    sd = math.sqrt(a * b / (a + b + 1.0)) / (a + b)
    return x, sd * (1e-3 + (0.08 + 0.0015 * zz * zz + 0.25 / least) / least)


@njit_views
def quantile(a, b, u, x):
    """The quantile by Halley's method from x: P(Beta(a, b) <= quantile) = u, for a, b >= 1.

    A step cubes the error in units of the standard deviation, or of the distance from 0 or 1 if
    that is less: for the normal distribution e becomes (1/6 + z^2/12) e^3.
    """
    if u <= 0.0:
        return 0.0
    log_B, sd = log_beta(a, b), math.sqrt(a * b / (a + b + 1.0)) / (a + b)
    low, high = 0.0, 1.0
    for _ in range(200):
        F, Q, density = distribution(a, b, log_B, x)
        error = F - u if u < 0.5 else (1.0 - u) - Q
        if error > 0.0:
            high = x
        else:
            low = x
        new = 0.5 * (low + high)
        if density > 0.0:
            step = error / density * x * (1.0 - x)
            bend = (a - 1.0) / x - (b - 1.0) / (1.0 - x)
            step /= max(1.0 - 0.5 * step * bend, 0.5)
            if abs(step) < NEAR * min(sd, x, 1.0 - x):
                return x - step
            if low < x - step < high:
                new = x - step
        x = new
    return x


@njit_views
def draw_exactly(i, u, betas):
    """The draw of item i without error."""
    if betas.error[i] > 0.0:
        betas.theta[i] = quantile(betas.a[i], betas.b[i], u[i], betas.theta[i])
        betas.error[i] = 0.0


@njit_views
def is_before(i, j, u, betas):
    """Whether item i has a larger draw than j, or the same and a smaller label."""
    theta, error = betas.theta, betas.error
    if abs(theta[i] - theta[j]) <= error[i] + error[j]:
        draw_exactly(i, u, betas)
        draw_exactly(j, u, betas)
    return theta[i] > theta[j] or (theta[i] == theta[j] and i < j)


@njit_views
def top_draws(u, betas, held):
    """The labels of the K largest draws, in decreasing order."""
    L, K, above = betas.a.shape[0], held.shape[0], betas.above
    n = 0
    for i in range(L):
        above[n] = i
        n += u[i] > betas.F[i]
    off = n < K or n > 3 * K + 12
    if n < K:
        n = L
        for i in range(L):
            above[i] = i
    for m in range(n):
        i = above[m]
        betas.theta[i], betas.error[i] = near_quantile(betas.a[i], betas.b[i], u[i])
    for m in range(n):
        i, k = above[m], min(m, K)
        while k > 0 and is_before(i, held[k - 1], u, betas):
            if k < K:
                held[k] = held[k - 1]
            k -= 1
        if k < K:
            held[k] = i
    if off:
        set_level(K, betas)


@njit_views
def set_level(K, betas):
    """A level that about K + 3 sqrt(K) of the draws will be above; 0 if L is not much more."""
    L = betas.a.shape[0]
    target = K + 3.0 * math.sqrt(K)
    if target >= 0.8 * L:
        return
    low, high = 0.0, 1.0
    for _ in range(30):
        betas.level[0] = 0.5 * (low + high)
        expected = 0.0
        for i in range(L):
            set_beta(i, betas.a[i], betas.b[i], betas)
            expected += 1.0 - betas.F[i]
        if abs(expected - target) < 0.1 * target:
            return
        if expected > target:
            low = betas.level[0]
        else:
            high = betas.level[0]


@njit_views
def set_beta(i, a, b, betas):
    """A new posterior of item i."""
    betas.a[i], betas.b[i] = a, b
    if betas.level[0] > 0.0:
        F, _, density = distribution(a, b, log_beta(a, b), betas.level[0])
        betas.F[i], betas.density[i] = F, density


@njit_views
def count_beta(i, click, betas):
    """The posterior of item i after a click, or none.

    With d = x^a (1-x)^b / B(a, b), F falls by d / a as a rises by 1, and rises by d / b with b.
    """
    a, b, x, d = betas.a[i], betas.b[i], betas.level[0], betas.density[i]
    if d < TINY or int(a + b) % EXACT == 0:
        set_beta(i, a + click, b + 1.0 - click, betas)
    elif click:
        betas.F[i] -= d / a
        betas.density[i] = d * x * (a + b) / a
        betas.a[i] = a + 1.0
    else:
        betas.F[i] += d / b
        betas.density[i] = d * (1.0 - x) * (a + b) / b
        betas.b[i] = b + 1.0
