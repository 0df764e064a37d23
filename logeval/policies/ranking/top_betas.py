"""The K largest of L independent draws theta_i ~ Beta(a_i, b_i), without making all of them.

theta_i = F_i^{-1}(u_i) for a uniform u_i, with F_i the distribution function. At a level x, the
same for all items, theta_i > x exactly if u_i > F_i(x), and F_i(x) changes only with a_i and b_i.
So with F_i(x) at hand one comparison rules an item out; if K or more are above the level, the
largest are among them. The level is set so that about K + 4 sqrt(K) are, and set anew when there
are fewer than K (then all are drawn) or far more. The list does not depend on the level.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from logeval.arrays import Floats, Ints
from logeval.kernels import njit_inline, njit_views
from logeval.policies import normal
from logeval.policies.beta import continued_fraction
from logeval.policies.ranking.places import sort_descending

# Halley's method: a step smaller than this many standard deviations is the last one
NEAR = 1e-3  # leaves about 1e-9 of them
CLOSE = 0.1  # mostly the first step; leaves what ``CUBE`` bounds
CUBE = 5.0  # times the cube of the last step is above the error


class Betas(NamedTuple):
    """Posteriors and the level, of all replicas or of one."""

    a: Floats  # (L,)
    b: Floats  # (L,)
    log_B: Floats  # (L,) log B(a, b)
    F: Floats  # (L,) F_i(level)
    level: Floats  # (1,)
    above: Ints  # (L,) scratch: the items above the level
    start: Floats  # (L,) scratch: nearly their draws
    by_start: Ints  # (L,) scratch: their order
    error: Floats  # (L,) scratch: bounds on the errors of the draws on the list


def uniform_betas(R: int, L: int) -> Betas:
    """Beta(1, 1) for all items; at level 0 every item is drawn."""
    ones, zeros = np.ones((R, L)), np.zeros((R, L))
    above, by_start = (np.zeros((R, L), dtype=np.int64) for _ in range(2))
    return Betas(
        ones, ones.copy(), zeros, zeros.copy(), np.zeros((R, 1)), above, np.zeros((R, L)), by_start,
        np.zeros((R, L)),
    )  # fmt: skip


@njit_inline
def betas_of(r, L, betas):
    """Those of replica r, which has L items."""
    return Betas(
        betas.a[r, :L], betas.b[r, :L], betas.log_B[r, :L], betas.F[r, :L], betas.level[r],
        betas.above[r, :L], betas.start[r, :L], betas.by_start[r, :L],
        betas.error[r, :L],
    )  # fmt: skip


@njit_views
def log_beta(a, b):
    """log B(a, b)."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@njit_views
def distribution(a, b, log_B, x):
    """F(x), 1 - F(x), and x (1 - x) times the density, of Beta(a, b)."""
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
def near_quantile(a, b, u):
    """The quantile approximately: Abramowitz and Stegun, 26.5.22."""
    z = -normal.near_quantile(max(u, 1e-300))
    s, t = 1.0 / (2.0 * a - 1.0), 1.0 / (2.0 * b - 1.0)
    h, m = 2.0 / (s + t), (z * z - 3.0) / 6.0
    w = z * math.sqrt(max(h + m, 0.0)) / h - (t - s) * (m + 5.0 / 6.0 - 2.0 / (3.0 * h))
    x = a / (a + b * math.exp(2.0 * min(w, 300.0)))
    return min(max(x, 1e-15), 1.0 - 1e-15)


@njit_views
def solve(a, b, log_B, u, x, near):
    """The quantile by Halley's method from x, until a step is below ``near``; and a bound on its
    error. Both in units of the standard deviation, or of the distance from 0 or 1 if that is less.

    A step cubes the error: for the normal distribution e becomes (1/6 + z^2/12) e^3.
    """
    if u <= 0.0:
        return 0.0, 0.0
    sd = math.sqrt(a * b / (a + b + 1.0)) / (a + b)
    low, high = 0.0, 1.0
    for _ in range(200):
        F, Q, density = distribution(a, b, log_B, x)
        error = F - u if u < 0.5 else (1.0 - u) - Q
        if error > 0.0:
            high = x
        else:
            low = x
        if density > 0.0:
            step = error / density * x * (1.0 - x)
            bend = (a - 1.0) / x - (b - 1.0) / (1.0 - x)
            step /= max(1.0 - 0.5 * step * bend, 0.5)
            new, unit = x - step, min(sd, x, 1.0 - x)
            size = abs(step) / unit
            if size < near:
                return new, CUBE * size * size * size * unit
            x = new if low < new < high else 0.5 * (low + high)
        else:
            x = 0.5 * (low + high)
    return x, 0.0


@njit_views
def quantile(a, b, log_B, u, x):
    """The quantile from a start x: P(Beta(a, b) <= quantile) = u, for a, b >= 1."""
    return solve(a, b, log_B, u, x, NEAR)[0]


@njit_views
def set_level(K, betas):
    """A level that about K + 4 sqrt(K) of the draws will be above."""
    L = betas.a.shape[0]
    target = K + 4.0 * math.sqrt(K)
    betas.level[0], betas.F[:] = 0.0, 0.0
    if target >= 0.8 * L:
        return
    low, high = 0.0, 1.0
    for _ in range(30):
        x = 0.5 * (low + high)
        expected = 0.0
        for i in range(L):
            betas.F[i] = distribution(betas.a[i], betas.b[i], betas.log_B[i], x)[0]
            expected += 1.0 - betas.F[i]
        betas.level[0] = x
        if abs(expected - target) < 0.1 * target:
            return
        if expected > target:
            low = x
        else:
            high = x


@njit_views
def is_below(a, b, log_B, u, x):
    """Whether the draw is below x: surely by Cantelli's inequality, P(theta >= x) <= v / (v + d^2)
    with d = x - mean, else by its distribution function."""
    mean = a / (a + b)
    v, d = mean * (1.0 - mean) / (a + b + 1.0), x - mean
    if d > 0.0 and 1.0 - u > v / (v + d * d):
        return True
    return u <= distribution(a, b, log_B, x)[0]


@njit_views
def refine(k, u, betas, held, theta):
    """The draw of the item at place k exactly."""
    i = held[k]
    theta[k] = quantile(betas.a[i], betas.b[i], betas.log_B[i], u[i], theta[k])
    betas.error[k] = 0.0


@njit_views
def insert_draw(i, start, u, size, betas, held, theta):
    """Insert item i where its draw belongs; draws too close to tell apart are made exact.

    Returns the new size of the list.
    """
    a, b, log_B, K = betas.a[i], betas.b[i], betas.log_B[i], held.shape[0]
    x, error = solve(a, b, log_B, u[i], start, CLOSE)
    j = size
    while j > 0:
        if abs(x - theta[j - 1]) <= error + betas.error[j - 1]:
            refine(j - 1, u, betas, held, theta)
            x, error = quantile(a, b, log_B, u[i], x), 0.0
        if x < theta[j - 1] or (x == theta[j - 1] and i > held[j - 1]):
            break
        j -= 1
    for k in range(min(size, K - 1), j, -1):
        held[k], theta[k], betas.error[k] = held[k - 1], theta[k - 1], betas.error[k - 1]
    if j < K:
        held[j], theta[j], betas.error[j] = i, x, error
    return min(size + 1, K)


@njit_views
def top_draws(u, betas, held, theta):
    """The labels of the K largest draws, in decreasing order, and nearly the draws."""
    L, K = betas.a.shape[0], held.shape[0]
    n = 0
    for i in range(L):
        if u[i] > betas.F[i]:
            betas.above[n] = i
            n += 1
    few, many = n < K, betas.level[0] > 0.0 and n > 3 * K + 12
    if few:
        n = L
        for i in range(L):
            betas.above[i] = i
    for j in range(n):
        i = betas.above[j]
        betas.start[j] = near_quantile(betas.a[i], betas.b[i], u[i])
    sort_descending(betas.start, n, betas.by_start)
    size = 0
    for m in range(n):  # the likely winners first: they set a high bar
        i, start = betas.above[betas.by_start[m]], betas.start[betas.by_start[m]]
        if size == K:
            bar = theta[K - 1] - betas.error[K - 1]
            if is_below(betas.a[i], betas.b[i], betas.log_B[i], u[i], bar):
                continue
        size = insert_draw(i, start, u, size, betas, held, theta)
    if few or many:
        set_level(K, betas)


@njit_views
def set_beta(i, a, b, betas):
    """A new posterior of item i."""
    betas.a[i], betas.b[i], betas.log_B[i] = a, b, log_beta(a, b)
    if betas.level[0] > 0.0:
        betas.F[i] = distribution(a, b, betas.log_B[i], betas.level[0])[0]
