"""PB-MHB: Thompson sampling in the position-based model with theta and kappa both unknown.

One particle (theta, kappa), kappa = 1 at the best position, is kept and moved by one sweep of the
Metropolis-Hastings algorithm per round: for each theta_i, then each other kappa_l, propose y from a
normal around the present value x, sd = c / sqrt(t), truncated to [0, 1], and accept it with

    min(1, posterior(y) / posterior(x) * Z(x) / Z(y)),    Z(x) = P(N(x, sd^2) in [0, 1]).

The posterior is prod_il (theta_i kappa_l)^S_il (1 - theta_i kappa_l)^(N_il - S_il), of a flat prior
(the authors' program adds 1/2 to both exponents of every cell, which does worse). The largest theta
goes to the largest kappa. The start is uniform.

Gauthier, Gaudel, Fromont: Position-based multiple-play bandits with Thompson sampling (IDA 2021).
A sweep is 2 L K logarithms of ratios.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from logeval.errors import LogevalError
from logeval.policies.setting import Setting
from logeval.policies.shared.blocks import ItemPositions, count
from logeval.policies.shared.kernel_policy import KernelPolicy, floats, ints
from logeval.policies.shared.places import Places, insert_best, read, show, sort_by
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import ZERO, njit_inline, njit_views

EDGE = 1e-12  # values stay this far from 0 and 1


class Particle(NamedTuple):
    """theta and kappa of one replica, and what it has seen."""

    theta: Floats = floats("L", fill=0.5)
    kappa: Floats = floats("K", fill=1.0)  # by place; the first stays 1
    cells: ItemPositions = ItemPositions()
    largest: Ints = ints("K", shared=True)  # items by theta
    value: Floats = floats("K", shared=True)  # their theta
    by_kappa: Ints = ints("K")  # places by kappa
    places: Places = Places()


@njit_views
def normal_cdf(x):
    """P(Z <= x)."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@njit_views
def normal_quantile(p):
    """The x with P(Z <= x) = p, 0 < p < 1.

    A rational function is right to 4.5e-4 (Abramowitz and Stegun, 26.2.23), and each of two steps
    of Halley's method cubes the error.
    """
    tail = min(p, 1.0 - p)
    t = math.sqrt(-2.0 * math.log(tail))
    x = (
        (2.515517 + t * (0.802853 + t * 0.010328))
        / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t
    )  # fmt: skip
    for _ in range(2):
        e = (normal_cdf(x) - tail) * math.sqrt(2.0 * math.pi) * math.exp(0.5 * x * x)
        x -= e / (1.0 + 0.5 * x * e)
    return x if p < 0.5 else -x


@njit_views
def propose(x, sd, u):
    """From N(x, sd^2) truncated to [0, 1], and log of Z(x) / Z(y)."""
    low, high = normal_cdf(-x / sd), normal_cdf((1.0 - x) / sd)
    y = x + sd * normal_quantile(low + u * (high - low))
    y = min(max(y, EDGE), 1.0 - EDGE)
    Z = normal_cdf((1.0 - y) / sd) - normal_cdf(-y / sd)
    return y, math.log((high - low) / Z)


@njit_views
def move(x, sd, u, other, S, T):
    """One step of Metropolis-Hastings for a value x that multiplies each of ``other``.

    S clicks in T views belong to the products.
    """
    y, log_ratio = propose(x, sd, u[0])
    clicks = 0.0
    for k in range(other.shape[0]):
        clicks += S[k]
        missed = float(T[k] - S[k])
        if missed > 0.0:
            log_ratio += missed * math.log((1.0 - y * other[k]) / (1.0 - x * other[k]))
    if clicks > 0.0:
        log_ratio += clicks * math.log(y / x)
    return y if math.log(max(u[1], 1e-300)) < log_ratio else x


@njit_inline
def sweep(sd, u, p):
    """Move every theta and then every kappa but the first."""
    S, T, (L, K) = p.cells.S, p.cells.T, p.cells.S.shape
    for i in range(L):
        p.theta[i] = move(p.theta[i], sd, u[2 * (K - 1) + 2 * i :], p.kappa, S[i], T[i])
    for k in range(1, K):
        p.kappa[k] = move(p.kappa[k], sd, u[2 * (k - 1) :], p.theta, S[:, k], T[:, k])


@njit_inline
def recommend_one(now, u, p, A):
    """A sweep, and the largest theta onto the largest kappa."""
    (sd,), size = now, ZERO
    sweep(sd, u, p)
    for i in range(p.theta.shape[0]):
        size = insert_best(p.largest, p.value, size, i, p.theta[i])
    sort_by(p.kappa, p.by_kappa)
    show(p.largest, p.by_kappa, p.places.held)
    show(p.places.held, p.places.order, A)


@njit_inline
def learn_one(now, p, A, clicks):
    """Count the list."""
    read(A, clicks, p.places)
    count(p.places.held, p.places.c, p.cells)


class PBMHB(KernelPolicy):
    """A draw of attraction and examination together; ``first`` is the most examined position."""

    NAME, PAPER = "PB-MHB", "Gauthier et al., IDA 2021"
    KNOWS, READS, COST = "the most examined position", "all clicks", "2 L K"
    FIGURE = 27
    PARAMETERS: ClassVar = {"c": 1000.0, "first": 1}
    KERNELS = Particle(), recommend_one, learn_one

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given, uniforms=2 * (setting.L + setting.K - 1))
        c, first, K = self.given.c, self.given.first, setting.K
        if c <= 0.0:
            raise LogevalError(f"PB-MHB: c={c} must be above 0")
        if not 1 <= first <= K:
            raise LogevalError(f"PB-MHB: first={first} must be a position from 1 to {K}")
        self.memory.places.order[:] = [first - 1, *(k for k in range(K) if k != first - 1)]
        self.memory.by_kappa[:] = np.arange(K)
        for r, generator in enumerate(setting.generators):
            self.memory.theta[r, : setting.L[r]] = generator.random(setting.L[r])
            self.memory.kappa[r, 1:] = generator.random(K - 1)

    def now(self, t: int) -> tuple[float]:
        """The standard deviation of proposals."""
        return (self.given.c / math.sqrt(t),)
