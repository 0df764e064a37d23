"""Logistic regression that follows the clicks: three ways to keep theta up to date.

The objective is sum over observed rows of y log mu + (1 - y) log(1 - mu) - ridge / 2 |theta|^2
(gl-cdcm, equation 4, with a ridge because the plain equation has no solution while the clicks can
be separated).

- ``Folded``: exact, for contexts that repeat. Equal rows are folded into counts: n_e
  observations and s_e clicks of row e. Newton's method starts from the last theta with an
  inverse Hessian that is corrected by rank one where a weight n_e mu' moved by more than 10%,
  and inverted afresh every ``FRESH`` rounds. The gradient is always the true one, so the
  Hessian's error costs steps, not accuracy.
- ``Unfolded``: for contexts that do not repeat. All rows are kept and fitted again when they
  have grown by 5%; in between each round makes one Newton step on its own rows.
- ``Gradient``: one stochastic gradient step a round (equations 14 and 15).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numba import njit
from scipy.special import expit

from logeval.arrays import Floats, Ints
from logeval.policies.contextual.design import add_to_inverse
from logeval.policies.contextual.rounds import FAST, Contexts, Round, dot, inner_rows, sigmoid

MOVED = 0.1  # relative change of a weight that is worth a correction
FRESH = 500  # rounds between two inversions of the Hessian
SMALL = 3e-4  # largest change of a prediction in the last Newton step
LARGE = 1.0  # and in any step: mu' changes by less than a factor e, so the step goes down
STEPS = 50
PATIENCE = 6  # steps of Unfolded with an old Hessian
GROWTH = 1.05  # of the rows between two fits of Unfolded


class Estimate(Protocol):
    """What the three ways offer."""

    theta: Floats  # (R, d)

    def scores(self, now: Round) -> Floats:
        """theta . x of the items of the round, (R, L)."""

    def learn(self, t: int, now: Round, A: Ints, clicks: Ints, C: Ints) -> None:
        """Learn from the first C rows of the lists A."""


def estimate(contexts: Contexts, R: int, update: str, ridge: float, eta: float) -> Estimate:
    """The way that ``update`` and the contexts call for."""
    if update == "sgd":
        return Gradient(contexts, R, eta)
    return Folded(contexts, R, ridge) if contexts.repeat else Unfolded(contexts, R, ridge)


class Fit(NamedTuple):
    """The state of ``Folded``: of all replicas, or without the first axis of one."""

    theta: Floats  # (R, d)
    H_inv: Floats  # (R, d, d)
    weight: Floats  # (R, M) n_e mu' as it is in H_inv
    z: Floats  # (R, M) theta . x of the rows seen
    n: Floats  # (R, M)
    s: Floats  # (R, M)
    seen: Ints  # (R, M) the rows with n > 0, in the order they came
    m: Ints  # (R,) how many


@njit(cache=True, nogil=True, fastmath=FAST)
def newton_folded(X, ridge, theta, H_inv, weight, z, n, s, seen, m):
    """Newton's method on the m rows seen, from theta; returns the number of steps."""
    d = theta.shape[0]
    g, step, dz = np.empty(d), np.empty(d), np.empty(m)
    for steps in range(STEPS):
        for i in range(d):
            g[i] = -ridge * theta[i]
        for j in range(m):
            e = seen[j]
            p = sigmoid(z[e])
            w = n[e] * p * (1.0 - p)
            if abs(w - weight[e]) > MOVED * w:
                add_to_inverse(H_inv, X[e], w - weight[e])
                weight[e] = w
            residual = s[e] - n[e] * p
            for i in range(d):
                g[i] += residual * X[e, i]
        for i in range(d):
            step[i] = dot(H_inv[i], g)
        largest = 0.0
        for j in range(m):
            dz[j] = dot(X[seen[j]], step)
            largest = max(largest, abs(dz[j]))
        scale = min(1.0, LARGE / largest) if largest > 0.0 else 1.0
        for i in range(d):
            theta[i] += scale * step[i]
        for j in range(m):
            z[seen[j]] += scale * dz[j]
        if largest <= SMALL:
            return steps + 1
    return STEPS


def invert_folded(X: Floats, ridge: float, fit: Fit) -> None:
    """The inverse Hessian and the predictions of one replica from scratch.

    Rounding errors end here.
    """
    seen = fit.seen[: int(fit.m)]
    x = X[seen]
    z = x @ fit.theta
    p = expit(z)
    fit.z[seen], fit.weight[seen] = z, fit.n[seen] * p * (1.0 - p)
    fit.H_inv[:] = np.linalg.inv((x.T * fit.weight[seen]) @ x + ridge * np.eye(X.shape[1]))


@njit(cache=True, nogil=True)
def learn_folded(X, table, row, A, clicks, C, ridge, fit):
    """Count the observed rows of each replica, and fit."""
    for r in range(A.shape[0]):
        if C[r] == 0:
            continue
        x = X[table[r]]
        for k in range(C[r]):
            e = row[r, A[r, k]]
            if fit.n[r, e] == 0.0:
                fit.seen[r, fit.m[r]] = e
                fit.m[r] += 1
                fit.z[r, e] = dot(x[e], fit.theta[r])
            fit.n[r, e] += 1.0
            fit.s[r, e] += clicks[r, k]
        newton_folded(
            x, ridge, fit.theta[r], fit.H_inv[r], fit.weight[r], fit.z[r], fit.n[r], fit.s[r],
            fit.seen[r], fit.m[r],
        )  # fmt: skip


class Folded:
    """Exact fits on counts of rows that repeat."""

    def __init__(self, contexts: Contexts, R: int, ridge: float) -> None:
        d, M = contexts.d, contexts.M
        self._ridge = ridge
        self.fit = Fit(
            theta=np.zeros((R, d)),
            H_inv=np.tile(np.eye(d) / ridge, (R, 1, 1)),
            weight=np.zeros((R, M)),
            z=np.zeros((R, M)),
            n=np.zeros((R, M)),
            s=np.zeros((R, M)),
            seen=np.zeros((R, M), dtype=np.int64),
            m=np.zeros(R, dtype=np.int64),
        )
        self.theta = self.fit.theta
        self._z = np.empty((R, contexts.widest))

    def scores(self, now: Round) -> Floats:
        """theta . x of the items of the round, (R, L)."""
        z = self._z[:, : now.row.shape[1]]
        inner_rows(now.X, now.table, now.row, self.theta, z)
        return z

    def learn(self, t: int, now: Round, A: Ints, clicks: Ints, C: Ints) -> None:
        """Count the first C rows of the lists A, and fit."""
        if t % FRESH == 0:
            for r, table in enumerate(now.table):
                invert_folded(now.X[table], self._ridge, Fit(*(x[r] for x in self.fit)))
        learn_folded(now.X, now.table, now.row, A, clicks, C, self._ridge, self.fit)

    def sample(self, now: Round, scale: float, rngs: list[np.random.Generator]) -> Floats:
        """theta . x, (R, L), for theta ~ N(theta, scale^2 H^-1), without a factorisation.

        H^-1 (sum_e sqrt(w_e) xi_e x_e + sqrt(ridge) zeta) has the covariance H^-1.
        """
        d = self.theta.shape[1]
        drawn = np.empty_like(self.theta)
        for r, rng in enumerate(rngs):
            rows = self.fit.seen[r, : self.fit.m[r]]
            draw = rng.standard_normal(d + len(rows))
            b = np.sqrt(self._ridge) * draw[:d]
            b += (np.sqrt(self.fit.weight[r, rows]) * draw[d:]) @ now.X[now.table[r]][rows]
            drawn[r] = self.theta[r] + scale * (self.fit.H_inv[r] @ b)
        z = self._z[:, : now.row.shape[1]]
        inner_rows(now.X, now.table, now.row, drawn, z)
        return z


def newton_unfolded(X: Floats, y: Floats, ridge: float, theta: Floats, H_inv: Floats) -> int:
    """Newton's method on all rows, from theta and H_inv; returns the number of steps.

    A step costs O(N d) with the inverse Hessian that is there; when ``PATIENCE`` steps did not
    suffice it is made anew, in O(N d^2).
    """
    for steps in range(STEPS):
        p = expit(X @ theta)
        if steps % PATIENCE == PATIENCE - 1:
            root = X * np.sqrt(p * (1.0 - p))[:, None]
            H_inv[:] = np.linalg.inv(root.T @ root + ridge * np.eye(X.shape[1]))
        step = H_inv @ ((y - p) @ X - ridge * theta)
        length = float(np.sqrt(step @ step))  # no prediction changes by more, as |x| <= 1
        theta += step * min(1.0, LARGE / max(length, 1e-300))
        if length <= SMALL:
            return steps + 1
    return STEPS


@njit(cache=True, nogil=True)
def step_on_rows(x, y, theta, H_inv):
    """One Newton step on the rows of a round: H grows by theirs, theta follows their gradient."""
    C, d = x.shape
    g = np.zeros(d)
    for k in range(C):
        p = sigmoid(dot(x[k], theta))
        add_to_inverse(H_inv, x[k], p * (1.0 - p))
        g += (y[k] - p) * x[k]
    for i in range(d):
        theta[i] += dot(H_inv[i], g)


@njit(cache=True, nogil=True)
def keep_rows(X, table, row, A, clicks, C, theta, H_inv, kept, y, N):
    """Keep the observed rows of each replica, and make a step on them."""
    for r in range(A.shape[0]):
        first = N[r]
        for k in range(C[r]):
            kept[r, N[r]] = X[table[r], row[r, A[r, k]]]
            y[r, N[r]] = clicks[r, k]
            N[r] += 1
        step_on_rows(kept[r, first : N[r]], y[r, first : N[r]], theta[r], H_inv[r])


class Unfolded:
    """Fits on all rows, for contexts that do not repeat."""

    def __init__(self, contexts: Contexts, R: int, ridge: float) -> None:
        d = contexts.d
        self._ridge = ridge
        self.theta = np.zeros((R, d))
        self.H_inv = np.tile(np.eye(d) / ridge, (R, 1, 1))
        self._kept, self._y = np.empty((R, 256, d)), np.empty((R, 256))
        self._N = np.zeros(R, dtype=np.int64)
        self._fitted = np.zeros(R, dtype=np.int64)
        self._z = np.empty((R, contexts.widest))

    def scores(self, now: Round) -> Floats:
        """theta . x of the items of the round, (R, L)."""
        z = self._z[:, : now.row.shape[1]]
        inner_rows(now.X, now.table, now.row, self.theta, z)
        return z

    def learn(self, t: int, now: Round, A: Ints, clicks: Ints, C: Ints) -> None:
        """Keep the first C rows of the lists A, and step or fit."""
        room = self._kept.shape[1]
        if self._N.max() + A.shape[1] > room:
            self._kept = np.concatenate([self._kept, np.empty_like(self._kept)], axis=1)
            self._y = np.concatenate([self._y, np.empty_like(self._y)], axis=1)
        keep_rows(
            now.X, now.table, now.row, A, clicks, C, self.theta, self.H_inv, self._kept, self._y,
            self._N,
        )  # fmt: skip
        for r in np.flatnonzero((GROWTH * self._fitted <= self._N) & (self._N > 0)):
            N = self._N[r]
            rows, y = self._kept[r, :N], self._y[r, :N]
            newton_unfolded(rows, y, self._ridge, self.theta[r], self.H_inv[r])
            self._fitted[r] = N

    def sample(self, now: Round, scale: float, rngs: list[np.random.Generator]) -> Floats:
        """theta . x, (R, L), for theta ~ N(theta, scale^2 H^-1)."""
        noise = np.stack([rng.standard_normal(self.theta.shape[1]) for rng in rngs])
        root = np.linalg.cholesky(self.H_inv)
        drawn = self.theta + scale * np.einsum("rij,rj->ri", root, noise)
        z = self._z[:, : now.row.shape[1]]
        inner_rows(now.X, now.table, now.row, drawn, z)
        return z


@njit(cache=True, nogil=True, fastmath=FAST)
def step_one(X, row, A, clicks, C, eta, theta, residual):
    """theta += eta sum_k (y_k - mu(theta . x_k)) x_k, with the theta of the round before."""
    for k in range(C):
        residual[k] = clicks[k] - sigmoid(dot(X[row[A[k]]], theta))
    for k in range(C):
        c = eta * residual[k]
        x = X[row[A[k]]]
        for i in range(theta.shape[0]):
            theta[i] += c * x[i]


@njit(cache=True, nogil=True)
def step_rows(X, table, row, A, clicks, C, eta, theta):
    """``step_one`` for each replica."""
    residual = np.empty(A.shape[1])
    for r in range(A.shape[0]):
        step_one(X[table[r]], row[r], A[r], clicks[r], C[r], eta, theta[r], residual)


class Gradient:
    """One stochastic gradient step a round."""

    def __init__(self, contexts: Contexts, R: int, eta: float) -> None:
        self.theta = np.zeros((R, contexts.d))
        self._eta = eta
        self._z = np.empty((R, contexts.widest))

    def scores(self, now: Round) -> Floats:
        """theta . x of the items of the round, (R, L)."""
        z = self._z[:, : now.row.shape[1]]
        inner_rows(now.X, now.table, now.row, self.theta, z)
        return z

    def learn(self, t: int, now: Round, A: Ints, clicks: Ints, C: Ints) -> None:
        """A step on the first C rows of the lists A."""
        step_rows(now.X, now.table, now.row, A, clicks, C, self._eta, self.theta)
