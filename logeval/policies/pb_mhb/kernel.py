"""PB-MHB: Thompson sampling in the position-based model with theta and kappa both unknown.

One particle (theta, kappa), kappa = 1 at the best position, is kept and moved by one sweep of the
Metropolis-Hastings algorithm per round: for each theta_i, then each other kappa_l, propose y from a
normal around the present value x, sd = c / sqrt(t), truncated to [0, 1], and accept it with

    min(1, posterior(y) / posterior(x) * Z(x) / Z(y)),    Z(x) = P(N(x, sd^2) in [0, 1]).

The posterior is prod_il (theta_i kappa_l)^S_il (1 - theta_i kappa_l)^(N_il - S_il), a flat prior;
``prior=half`` adds 1/2 to both exponents of every cell, as the authors' program does. The largest
theta goes to the largest kappa. The start is uniform.

Gauthier, Gaudel, Fromont: Position-based multiple-play bandits with Thompson sampling (IDA 2021).
A sweep is 2 L K logarithms of ratios.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from logeval.errors import LogevalError
from logeval.policies.pb_mhb import paper
from logeval.policies.setting import Setting
from logeval.policies.shared import normal
from logeval.policies.shared.cells import ItemPositions, cells_of, count, no_cells
from logeval.policies.shared.lazy_topk import plain
from logeval.policies.shared.places import Places, insert_best, places, read, show, sort_descending
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import ZERO, njit_views
from logeval.running.uniforms import Uniforms

EDGE = 1e-12  # values stay this far from 0 and 1


class Particle(NamedTuple):
    """theta and kappa, of all replicas or of one."""

    theta: Floats  # (L,)
    kappa: Floats  # (K,) by place; the first is 1


class Scratch(NamedTuple):
    """Memory that all replicas share."""

    largest: Ints  # (K,) items by theta
    value: Floats  # (K,) their theta
    by_kappa: Ints  # (K,) places by kappa


@njit_views
def propose(x, sd, u):
    """From N(x, sd^2) truncated to [0, 1], and log of Z(x) / Z(y)."""
    low, high = normal.cdf(-x / sd), normal.cdf((1.0 - x) / sd)
    y = x + sd * normal.quantile(low + u * (high - low))
    y = min(max(y, EDGE), 1.0 - EDGE)
    Z = normal.cdf((1.0 - y) / sd) - normal.cdf(-y / sd)
    return y, math.log((high - low) / Z)


@njit_views
def move(x, sd, u, other, S, T, extra):
    """One step of Metropolis-Hastings for a value x that multiplies each of ``other``.

    S clicks in T views belong to the products; ``extra`` is what the prior adds to both.
    """
    y, log_ratio = propose(x, sd, u[0])
    clicks = 0.0
    for k in range(other.shape[0]):
        clicks += S[k] + extra
        missed = T[k] - S[k] + extra
        if missed > 0.0:
            log_ratio += missed * math.log((1.0 - y * other[k]) / (1.0 - x * other[k]))
    if clicks > 0.0:
        log_ratio += clicks * math.log(y / x)
    return y if math.log(max(u[1], 1e-300)) < log_ratio else x


@njit_views
def sweep(sd, u, extra, cells, p):
    """Move every theta and then every kappa but the first."""
    L, K = cells.S.shape
    for i in range(L):
        v = u[2 * (K - 1) + 2 * i :]
        p.theta[i] = move(p.theta[i], sd, v, p.kappa, cells.S[i], cells.T[i], extra)
    for k in range(1, K):
        v = u[2 * (k - 1) :]
        p.kappa[k] = move(p.kappa[k], sd, v, p.theta, cells.S[:, k], cells.T[:, k], extra)


@njit_views
def recommend_one(sd, u, extra, cells, p, scratch, held):
    """A sweep, and the largest theta onto the largest kappa."""
    sweep(sd, u, extra, cells, p)
    size, K = ZERO, held.shape[0]
    for i in range(p.theta.shape[0]):
        size = insert_best(scratch.largest, scratch.value, size, i, p.theta[i])
    sort_descending(p.kappa, K, scratch.by_kappa)
    for k in range(K):
        held[scratch.by_kappa[k]] = scratch.largest[k]


@njit_views
def recommend_all(sd, u, extra, p, scratch, held, A, places, cells):
    """``recommend_one`` for each replica."""
    places, cells = Places(*places), ItemPositions(*cells)
    p, scratch = Particle(*p), Scratch(*scratch)
    for r in range(A.shape[0]):
        L = places.L[r]
        mine = cells_of(r, L, cells), Particle(p.theta[r, :L], p.kappa[r])
        recommend_one(sd, u[r], extra, *mine, scratch, held)
        show(held, places.order, A[r])


@njit_views
def update_all(A, clicks, held, c, places, cells):
    """Count the lists."""
    places, cells = Places(*places), ItemPositions(*cells)
    for r in range(A.shape[0]):
        read(A[r], clicks[r], places.order, held, c)
        count(held, c, cells_of(r, places.L[r], cells))


class PBMHB:
    """PB-MHB; ``first`` is the position (from 1) that is examined most."""

    NAME, PAPER = "PB-MHB", "Gauthier et al., IDA 2021"
    KNOWS, READS, COST = "the most examined position", "all clicks", "2 L K"
    REFERENCE, FIGURE = paper.PBMHB, 27
    PARAMETERS: ClassVar = {"c": float, "prior": ("flat", "half"), "first": int}

    def __init__(
        self, setting: Setting, *, c: float = 1000.0, prior: str = "flat", first: int = 1
    ) -> None:
        R, K, L = setting.R, setting.K, int(max(setting.L))
        if c <= 0.0:
            raise LogevalError(f"PB-MHB: c={c} must be above 0")
        if not 1 <= first <= K:
            raise LogevalError(f"PB-MHB: first={first} must be a position from 1 to {K}")
        others = [str(k) for k in range(1, K + 1) if k != first]
        self._places = places(setting, ">".join([str(first), *others]))
        self._cells = no_cells(R, L, K)
        self._scale, self._extra = c, 0.5 if prior == "half" else 0.0
        theta, kappa = np.full((R, L), 0.5), np.ones((R, K))
        for r, generator in enumerate(setting.generators):
            theta[r, : setting.L[r]] = generator.random(setting.L[r])
            kappa[r, 1:] = generator.random(K - 1)
        self._particle = Particle(theta, kappa)
        self._uniforms = Uniforms(setting.generators, 2 * (setting.L + K - 1))
        scratch = Scratch(np.empty(K, dtype=np.int64), np.empty(K), np.empty(K, dtype=np.int64))
        self._moved = plain(self._particle, scratch)
        self._state = plain(self._places, self._cells)
        self._held, self._c = np.empty(K, dtype=np.int64), np.empty(K, dtype=np.int64)
        self._A = np.empty((R, K), dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        recommend_all(
            self._scale / math.sqrt(t), self._uniforms.at(t), self._extra, *self._moved,
            self._held, self._A, *self._state,
        )  # fmt: skip
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks on the lists A."""
        update_all(A, clicks, self._held, self._c, *self._state)
