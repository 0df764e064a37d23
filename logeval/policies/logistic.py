"""GL-CDCM, LR, LogisticTS and UCB-GLM: attraction is a logistic function of theta . x.

theta is fitted to the rows up to the last click. GL-CDCM (gl-cdcm, Algorithm 1) shows the K items
with the largest

    U(a) = min{mu(theta . x_a) + rho(t - 1) ||x_a||_{V^-1}, 1}
    rho(t) = m (k_mu sigma / c_mu) sqrt(d / 2 log(1 + t / (lambda d)) + log(1 / delta))

with k_mu = 1/4, c_mu = 1/10, sigma = 1/2, delta = 1 / sqrt(n), the k-th largest at the k-th most
terminating position. LR is GL-CDCM without its bonus (section 3.3). docs/contextual.md says what
the paper leaves open.

The fit (``Fit``) maximises sum over observed rows of y log mu + (1 - y) log(1 - mu)
- ridge / 2 |theta|^2: gl-cdcm, equation 4, with a ridge because the plain equation has no solution
while the clicks can be separated. ``Gradient`` makes one stochastic gradient step a round instead
(equations 14 and 15).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit

from logeval.policies.contextual import (
    FEATURES,
    LEARNING,
    ContextualPolicy,
    Design,
    Generators,
    Theta,
    add_to_inverse,
)
from logeval.policies.setting import Contexts, Round, Setting
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import dot, njit_sums, njit_views, sigmoid

MOVED = 0.1  # relative change of a weight that is worth a correction
FRESH = 500  # rounds between two inversions of the Hessian
SMALL = 3e-4  # largest change of a prediction in the last Newton step
LARGE = 1.0  # and in any step: mu' changes by less than a factor e, so the step goes down
STEPS = 50
GROWTH = 1.05  # of the rows between two fits, where contexts do not repeat


class Rows(NamedTuple):
    """The rows that each replica has observed, (R, rows) each."""

    n: Floats  # observations
    s: Floats  # clicks
    weight: Floats  # n mu' as it is in the Hessian
    z: Floats  # theta . x, in the order they came
    dz: Floats  # and its change in a step
    order: Ints  # the rows with n > 0, in the order they came


@njit_sums
def newton(X, ridge, steps, n, s, weight, z, dz, order, theta, H_inv, work):
    """Newton's method on the rows in ``order``, from theta."""
    d, m = theta.shape[0], order.shape[0]
    g, step, u = work
    for j in range(m):
        z[j] = dot(X[order[j]], theta)
    for _ in range(steps):
        for i in range(d):
            g[i] = -ridge * theta[i]
        for j in range(m):
            e = order[j]
            p = sigmoid(z[j])
            w = n[e] * p * (1.0 - p)
            if abs(w - weight[e]) > MOVED * w:
                add_to_inverse(H_inv, X[e], w - weight[e], u)
                weight[e] = w
            residual = s[e] - n[e] * p
            for i in range(d):
                g[i] += residual * X[e, i]
        for i in range(d):
            step[i] = dot(H_inv[i], g)
        largest = 0.0
        for j in range(m):
            dz[j] = dot(X[order[j]], step)
            largest = max(largest, abs(dz[j]))
        scale = min(1.0, LARGE / largest) if largest > 0.0 else 1.0
        for i in range(d):
            theta[i] += scale * step[i]
        for j in range(m):
            z[j] += scale * dz[j]
        if largest <= SMALL:
            return


@njit_views
def learn_rows(
    X, table, row, A, clicks, C, kept, own, repeat, ridge, rows, m, fitted, theta, H_inv, work
):  # fmt: skip
    """Count the observed rows of each replica, and fit; ``kept[own[r]]`` are the rows of all."""
    for r in range(A.shape[0]):
        x, first, order = kept[own[r]], m[r], rows.order[r]
        for k in range(C[r]):
            e = row[r, A[r, k]]
            if not repeat:
                for i in range(theta.shape[1]):
                    x[m[r], i] = X[table[r], e, i]
                e = m[r]
            if rows.n[r, e] == 0.0:
                order[m[r]] = e
                m[r] += 1
            rows.n[r, e] += 1.0
            rows.s[r, e] += clicks[r, k]
        if C[r] > 0:
            all_rows = repeat or GROWTH * fitted[r] <= m[r]
            if all_rows:
                first, fitted[r] = 0, m[r]
            newton(
                x, ridge if all_rows else 0.0, STEPS if all_rows else 1, rows.n[r], rows.s[r],
                rows.weight[r], rows.z[r], rows.dz[r], order[first : m[r]], theta[r], H_inv[r],
                work,
            )  # fmt: skip


class Fit(Theta):
    """theta at the maximum of the objective, by Newton's method from the last theta.

    Where contexts repeat, equal rows are counts. Else all rows are kept; a fit is made when they
    have grown by 5%, and in between each round makes one step on its own rows.

    The inverse Hessian is corrected by rank one where a weight n mu' moved by more than 10%, and
    inverted afresh every ``FRESH`` rounds. The gradient is always the true one, so the Hessian's
    error costs steps, not accuracy.
    """

    def __init__(self, contexts: Contexts, R: int, ridge: float) -> None:
        super().__init__(contexts, R)
        d, self._ridge = contexts.d, ridge
        self.H_inv = np.tile(np.eye(d) / ridge, (R, 1, 1))
        size = contexts.M if contexts.repeat else 256
        self.rows = Rows._make([*np.zeros((5, R, size)), np.zeros((R, size), dtype=np.int64)])
        self._kept = np.empty((0, 0, d) if contexts.repeat else (R, size, d))
        self._m, self._fitted = np.zeros((2, R), dtype=np.int64)  # rows, and at the last fit
        self._work = tuple(np.empty((3, d)))

    def learn(self, t: int, now: Round, A: Ints, clicks: Ints, C: Ints) -> None:
        """Count the first C rows of the lists A, and fit."""
        if not self._repeat and self._m.max() + A.shape[1] > self._kept.shape[1]:
            self._kept = np.concatenate([self._kept, np.empty_like(self._kept)], axis=1)
            self.rows = Rows(*(np.concatenate([x, np.zeros_like(x)], axis=1) for x in self.rows))
        kept = now.X if self._repeat else self._kept
        own = now.table if self._repeat else np.arange(len(A))
        if t % FRESH == 0:
            for r, x in enumerate(kept[own]):
                self._invert(r, x)
        learn_rows(
            now.X, now.table, now.row, A, clicks, C, kept, own, self._repeat, self._ridge,
            self.rows, self._m, self._fitted, self.theta, self.H_inv, self._work,
        )  # fmt: skip

    def _invert(self, r: int, X: Floats) -> None:
        """The inverse Hessian of a replica from scratch."""
        e = self.rows.order[r, : self._m[r]]
        p = expit(X[e] @ self.theta[r])
        self.rows.weight[r, e] = w = self.rows.n[r, e] * p * (1.0 - p)
        self.H_inv[r] = np.linalg.inv((X[e].T * w) @ X[e] + self._ridge * np.eye(X.shape[1]))

    def sample(self, now: Round, scale: float, rngs: Generators) -> Floats:
        """theta . x, (R, L), for theta ~ N(theta, scale^2 H^-1)."""
        return self.draw(now, scale, self.H_inv, self._ridge, self.rows.weight, rngs)


@njit_sums
def step_rows(X, table, row, A, clicks, C, eta, theta, residual):
    """theta += eta sum_k (y_k - mu(theta . x_k)) x_k, with the theta of the round before."""
    for r in range(A.shape[0]):
        for k in range(C[r]):
            residual[k] = clicks[r, k] - sigmoid(dot(X[table[r], row[r, A[r, k]]], theta[r]))
        for k in range(C[r]):
            x = X[table[r], row[r, A[r, k]]]
            for i in range(theta.shape[1]):
                theta[r, i] += eta * residual[k] * x[i]


class Gradient(Theta):
    """A stochastic gradient step a round."""

    def __init__(self, contexts: Contexts, R: int, eta: float) -> None:
        super().__init__(contexts, R)
        self._eta, self._residual = eta, np.empty(contexts.widest)

    def learn(self, t: int, now: Round, A: Ints, clicks: Ints, C: Ints) -> None:
        """A step on the first C rows of the lists A."""
        step_rows(now.X, now.table, now.row, A, clicks, C, self._eta, self.theta, self._residual)


class Logistic(ContextualPolicy):
    """theta by logistic regression, with a ``ridge``; with ``update=sgd`` by steps of eta."""

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given)
        if getattr(self.given, "update", "exact") == "sgd":
            self._estimate: Any = Gradient(self._contexts, setting.R, self.given.eta)
        else:
            self._estimate = Fit(self._contexts, setting.R, self.given.ridge)

    @property
    def theta(self) -> Floats:
        """The estimate of theta, (R, d)."""
        theta: Floats = self._estimate.theta
        return theta

    def _learn(self, t: int, A: Ints, clicks: Ints, C: Ints) -> None:
        self._estimate.learn(t, self._now, A, clicks, C)


class LogisticUCB(Logistic):
    """The same with the widths ||x||_{V^-1}, V_0 = lambda I, for upper confidence bounds."""

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, **given)
        self._lam = self.given.lam or float(setting.K)
        self._design = Design(self._contexts, setting.R, self._lam)

    def _learn(self, t: int, A: Ints, clicks: Ints, C: Ints) -> None:
        super()._learn(t, A, clicks, C)
        self._design.add(self._now, A, clicks, C)


UPDATE = ("exact", "sgd")
K_MU, C_MU, SIGMA = 0.25, 0.1, 0.5  # of the sigmoid for ||theta|| <= 1, and of a click


def rho(rounds: float, d: int, lam: float, delta: float) -> float:
    """rho of equation 5."""
    inside = d / 2 * math.log(1 + rounds / (lam * d)) + math.log(1 / delta)
    return K_MU * SIGMA / C_MU * math.sqrt(inside)


@njit_views
def bound_rows(z, factor, widths, bound):
    """mu(z) + factor width."""
    for r in range(z.shape[0]):
        for a in range(z.shape[1]):
            bound[r, a] = sigmoid(z[r, a]) + factor * widths[r, a]


class GLCDCM(LogisticUCB):
    """Logistic regression with an upper confidence bound on the scale of the attraction."""

    NAME, PAPER = "GL-CDCM", "Liu et al., COCOON 2018"
    KNOWS, COST = f"horizon, {FEATURES}", "M d + L d^2"
    PARAMETERS: ClassVar = {
        "m": 0.1,
        "update": UPDATE,
        "ridge": 1.0,
        "eta": 0.1,
        "lam": 0.0,  # K
        **LEARNING,
    }

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, **given)
        self._delta = 1 / math.sqrt(setting.horizon)
        self._bound = np.empty((setting.R, self._contexts.widest))

    def _scores(self, t: int) -> Floats:
        width = rho(t - 1, self._contexts.d, self._lam, self._delta)
        z, widths = self._estimate.scores(self._now), self._design.widths(self._now)
        bound = self._bound[:, : z.shape[1]]
        bound_rows(z, self.given.m * width, widths, bound)
        return bound  # not capped at 1: ties there are broken by the value above


class LR(Logistic):
    """Logistic regression that always shows what it thinks best."""

    NAME, PAPER = "LR", "Liu et al., COCOON 2018"
    COST = "M d + d^2"
    PARAMETERS: ClassVar = {"update": UPDATE, "ridge": 0.01, "eta": 0.1, **LEARNING}

    def _scores(self, t: int) -> Floats:
        z: Floats = self._estimate.scores(self._now)
        return z  # mu is increasing: the order is the same


KAPPA = 0.25  # of the sigmoid at 0, as public implementations have it


class LogisticTS(Logistic):
    """A draw from the Laplace approximation of logistic regression, N(theta, scale^2 H^-1)."""

    NAME, PAPER = "LogisticTS", "Chapelle and Li, NIPS 2011"
    COST = "M d + d^2"
    PARAMETERS: ClassVar = {"scale": 0.5, "ridge": 1.0, **LEARNING}

    def _scores(self, t: int) -> Floats:
        drawn: Floats = self._estimate.sample(self._now, self.given.scale, self._rngs)
        return drawn


class UCBGLM(LogisticUCB):
    """Logistic regression with an upper confidence bound on theta . x.

    theta . x + alpha ||x||_{V^-1} (Li, Lu and Zhou 2017, Algorithm 1), V_0 = lambda I, where
    alpha = m (sigma / kappa) sqrt(d / 2 log(1 + 2 n / d) + log(1 / delta)) with sigma = 1/2,
    kappa = 1/4 and delta = 1 / n. Their random rounds, until V has no eigenvalue below 1, never end
    where the contexts do not span all dimensions: V and the fit have a ridge instead.
    """

    NAME, PAPER = "UCB-GLM", "Li et al., ICML 2017"
    KNOWS, COST = f"horizon, {FEATURES}", "M d + L d^2"
    PARAMETERS: ClassVar = {"m": 0.1, "ridge": 1.0, "lam": 1.0, **LEARNING}

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, **given)
        d, n = self._contexts.d, setting.horizon
        inside = d / 2 * math.log(1 + 2 * n / d) + math.log(n)
        self._alpha = self.given.m * SIGMA / KAPPA * math.sqrt(inside)

    def _scores(self, t: int) -> Floats:
        z: Floats = self._estimate.scores(self._now)
        return z + self._alpha * self._design.widths(self._now)
