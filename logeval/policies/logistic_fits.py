"""Logistic regression that follows the clicks: the ways to keep theta up to date.

The objective is sum over observed rows of y log mu + (1 - y) log(1 - mu) - ridge / 2 |theta|^2
(gl-cdcm, equation 4, with a ridge because the plain equation has no solution while the clicks can
be separated).

- ``Folded``: exact, where contexts repeat. Equal rows are counts; Newton's method in d dimensions,
  d^2 + rows d for a step.
- ``FoldedGram``: the same where rows are few, in the space of the rows, rows^2 for a step.
- ``Unfolded``: where contexts do not repeat. All rows are kept.
- ``Gradient``, ``GradientGram``: one stochastic gradient step a round (equations 14 and 15).

All have ``theta``, ``scores`` and ``learn``; the exact ones know the Hessian H, and ``sample``
theta . x for theta ~ N(theta, scale^2 H^-1).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from logeval.policies.contextual import Generators, Rows, Theta, add_to_gram, add_to_inverse
from logeval.policies.setting import Contexts, Round
from logeval.policies.shared.kernel_policy import allocate, floats, ints, plain, view_of
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import ZERO, dot, njit_sums, njit_views, sigmoid

MOVED = 0.1  # relative change of a weight that is worth a correction
FRESH = 500  # rounds between two inversions of the Hessian
SMALL = 3e-4  # largest change of a prediction in the last Newton step
LARGE = 1.0  # and in any step: mu' changes by less than a factor e, so the step goes down
STEPS = 50


class Counts(NamedTuple):
    """What was seen of the M rows, of one replica."""

    n: Floats = floats("M")
    s: Floats = floats("M")
    seen: Ints = ints("M")  # the rows with n > 0, in the order they came
    m: Ints = ints(1)  # how many


@njit_views
def count(row, A, clicks, C, counts):
    """Count the first C rows of the list A."""
    for k in range(C):
        e = row[A[k]]
        if counts.n[e] == 0.0:
            counts.seen[counts.m[0]] = e
            counts.m[0] += 1
        counts.n[e] += 1.0
        counts.s[e] += clicks[k]


class Counted:
    """Exact fits on counts: ``learn_one`` is the kernel that fits, ``renew`` ends rounding errors.

    ``renew(X, ridge, fit)`` makes what ``learn_one`` corrects anew, for one replica.
    """

    def __init__(
        self, memory: Any, learn_one: Any, renew: Any, contexts: Contexts, R: int, ridge: float
    ) -> None:
        self.fit, self._ridge = allocate(memory, R, M=contexts.M, d=contexts.d), ridge
        self._arrays, self._renew = plain(self.fit), renew
        self._learn_all, self._view = for_each_replica(memory, learn_one)

    def learn(self, t: int, now: Round, A: Ints, clicks: Ints, C: Ints) -> None:
        """Count the first C rows of the lists A, and fit."""
        if t % FRESH == 0:
            for r, table in enumerate(now.table):
                self._renew(now.X[table], self._ridge, self._view(r, 0, self._arrays))
        self._learn_all(now.X, now.table, now.row, A, clicks, C, self._ridge, self._arrays)


def for_each_replica(memory: Any, learn_one: Any) -> tuple[Any, Any]:
    """The kernel for all replicas with something observed, and the view of one for Python."""
    view = view_of(memory)

    @njit_views
    def learn_all(X, table, row, A, clicks, C, ridge, arrays):
        for r in range(A.shape[0]):
            if C[r] > 0:
                fit = view(r, ZERO, arrays)
                count(row[r], A[r], clicks[r], C[r], fit.counts)
                learn_one(X[table[r]], ridge, fit)

    return learn_all, view.py_func


class Fit(NamedTuple):
    """Of one replica."""

    theta: Floats = floats("d")
    H_inv: Floats = floats("d", "d")
    weight: Floats = floats("M")  # n_e mu' as it is in H_inv
    z: Floats = floats("M")  # theta . x of the rows seen
    known: Ints = ints(1)  # of how many rows z is known
    counts: Counts = Counts()
    g: Floats = floats("d", shared=True)
    step: Floats = floats("d", shared=True)
    u: Floats = floats("d", shared=True)
    dz: Floats = floats("M", shared=True)


@njit_sums
def newton_folded(X, ridge, fit):
    """Newton's method on the rows seen, from theta; returns the number of steps."""
    theta, H_inv, weight, z, known, (n, s, seen, _), g, step, u, dz = fit
    d, m = theta.shape[0], fit.counts.m[0]
    for j in range(known[0], m):
        z[seen[j]] = dot(X[seen[j]], theta)
    known[0] = m
    for steps in range(STEPS):
        for i in range(d):
            g[i] = -ridge * theta[i]
        for j in range(m):
            e = seen[j]
            p = sigmoid(z[e])
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


def invert(X: Floats, ridge: float, fit: Fit) -> None:
    """The inverse Hessian and the predictions from scratch."""
    seen = fit.counts.seen[: int(fit.counts.m[0])]
    x = X[seen]
    z = x @ fit.theta
    p = expit(z)
    fit.z[seen], fit.weight[seen] = z, fit.counts.n[seen] * p * (1.0 - p)
    fit.H_inv[:] = np.linalg.inv((x.T * fit.weight[seen]) @ x + ridge * np.eye(X.shape[1]))


class Folded(Theta, Counted):
    """Exact fits in the space of theta: n_e observations and s_e clicks of row e.

    Newton's method starts from the last theta with an inverse Hessian that is corrected by rank one
    where a weight n_e mu' moved by more than 10%, and inverted afresh every ``FRESH`` rounds. The
    gradient is always the true one, so the Hessian's error costs steps, not accuracy.
    """

    def __init__(self, contexts: Contexts, R: int, ridge: float) -> None:
        Theta.__init__(self, contexts, R)
        Counted.__init__(self, Fit(), newton_folded, invert, contexts, R, ridge)
        self.fit.H_inv[:] = np.eye(contexts.d) / ridge
        self.theta = self.fit.theta

    def sample(self, now: Round, scale: float, rngs: Generators) -> Floats:
        """theta . x, (R, L), for theta ~ N(theta, scale^2 H^-1), without a factorisation.

        H^-1 (sum_e sqrt(w_e) xi_e x_e + sqrt(ridge) zeta) has the covariance H^-1.
        """
        d = self.theta.shape[1]
        drawn = np.empty_like(self.theta)
        for r, rng in enumerate(rngs):
            rows = self.fit.counts.seen[r, : self.fit.counts.m[r, 0]]
            draw = rng.standard_normal(d + len(rows))
            b = np.sqrt(self._ridge) * draw[:d]
            b += (np.sqrt(self.fit.weight[r, rows]) * draw[d:]) @ now.X[now.table[r]][rows]
            drawn[r] = self.theta[r] + scale * (self.fit.H_inv[r] @ b)
        return self.scores(now, drawn)


class GramFit(NamedTuple):
    """Of one replica."""

    P: Floats = floats("M", "M")
    weight: Floats = floats("M")  # n mu' as it is in P
    z: Floats = floats("M")
    alpha: Floats = floats("M")  # 0 where a row was not seen
    counts: Counts = Counts()
    c: Floats = floats("M", shared=True)
    dz: Floats = floats("M", shared=True)
    g: Floats = floats("M", shared=True)


@njit_sums
def newton_gram(X, ridge, fit):
    """Newton's method on the rows seen; returns the number of steps."""
    P, weight, z, alpha, (n, s, seen, _), c, dz, g = fit
    M, m = z.shape[0], fit.counts.m[0]
    for steps in range(STEPS):
        for j in range(m):
            e = seen[j]
            p = sigmoid(z[e])
            w = n[e] * p * (1.0 - p)
            if abs(w - weight[e]) > MOVED * w:
                add_to_gram(P, e, w - weight[e], g)
                weight[e] = w
            c[e] = s[e] - n[e] * p - ridge * alpha[e]
        dz[:] = 0.0
        for j in range(m):
            e = seen[j]
            for i in range(M):
                dz[i] += c[e] * P[e, i]
        largest = 0.0
        for i in range(M):
            largest = max(largest, abs(dz[i]))
        scale = min(1.0, LARGE / largest) if largest > 0.0 else 1.0
        for i in range(M):
            z[i] += scale * dz[i]
        for j in range(m):
            e = seen[j]
            alpha[e] += scale * (c[e] - weight[e] * dz[e]) / ridge
        if largest <= SMALL:
            return steps + 1
    return STEPS


def renew(X: Floats, ridge: float, fit: GramFit) -> None:
    """P and z from scratch."""
    fit.z[:] = X @ (fit.alpha @ X)
    p = expit(fit.z)
    fit.weight[:] = fit.counts.n * p * (1.0 - p)
    H = (X.T * fit.weight) @ X + ridge * np.eye(X.shape[1])
    fit.P[:] = X @ np.linalg.solve(H, X.T)


class FoldedGram(Rows, Counted):
    """Exact fits in the space of the rows.

    theta is always a combination of rows, theta = X' alpha, so that nothing of length d is needed.
    Newton's step in theta is H^-1 X' c with c = s - n mu(z) - ridge alpha, which changes the
    predictions z = X theta by

        dz = P c,  P = X H^-1 X'

    and, as H = X' W X + ridge I, alpha by (c - W dz) / ridge. A weight that moved by more than 10%
    corrects P by rank one. All as in ``Folded`` at a cost of rows^2 whatever d is; every ``FRESH``
    rounds P and z are made anew from the weights and theta.
    """

    def __init__(self, contexts: Contexts, R: int, ridge: float) -> None:
        Rows.__init__(self, contexts, R)
        Counted.__init__(self, GramFit(), newton_gram, renew, contexts, R, ridge)
        self.fit.P[:] = self.products(ridge)[self._table]
        self.z = self.fit.z

    @property
    def theta(self) -> Floats:
        """(R, d)."""
        return self.combined(self.fit.alpha)

    def sample(self, now: Round, scale: float, rngs: Generators) -> Floats:
        """theta . x, (R, L), for theta ~ N(theta, scale^2 H^-1)."""
        return self.draw(now, scale, self._ridge, self.fit.P, self.fit.weight, rngs)


PATIENCE = 6  # steps with an old Hessian
GROWTH = 1.05  # of the rows between two fits


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


@njit_sums
def step_on_rows(x, y, theta, H_inv, g, u):
    """One Newton step on the rows of a round: H grows by theirs, theta follows their gradient."""
    C, d = x.shape
    g[:] = 0.0
    for k in range(C):
        p = sigmoid(dot(x[k], theta))
        add_to_inverse(H_inv, x[k], p * (1.0 - p), u)
        for i in range(d):
            g[i] += (y[k] - p) * x[k, i]
    for i in range(d):
        theta[i] += dot(H_inv[i], g)


@njit_views
def keep_rows(X, table, row, A, clicks, C, theta, H_inv, kept, y, N, g, u):
    """Keep the observed rows of each replica, and make a step on them."""
    for r in range(A.shape[0]):
        first = N[r]
        for k in range(C[r]):
            x = X[table[r], row[r, A[r, k]]]
            for i in range(x.shape[0]):
                kept[r, N[r], i] = x[i]
            y[r, N[r]] = clicks[r, k]
            N[r] += 1
        step_on_rows(kept[r, first : N[r]], y[r, first : N[r]], theta[r], H_inv[r], g, u)


class Unfolded(Theta):
    """Fits on all rows, again when they have grown by 5%.

    In between each round makes one Newton step on its own rows.
    """

    def __init__(self, contexts: Contexts, R: int, ridge: float) -> None:
        super().__init__(contexts, R)
        d, self._ridge = contexts.d, ridge
        self.H_inv = np.tile(np.eye(d) / ridge, (R, 1, 1))
        self._kept, self._y = np.empty((R, 256, d)), np.empty((R, 256))
        self._N, self._fitted = np.zeros((2, R), dtype=np.int64)  # rows kept, and at the last fit
        self._g, self._u = np.empty((2, d))

    def learn(self, t: int, now: Round, A: Ints, clicks: Ints, C: Ints) -> None:
        """Keep the first C rows of the lists A, and step or fit."""
        room = self._kept.shape[1]
        if self._N.max() + A.shape[1] > room:
            self._kept = np.concatenate([self._kept, np.empty_like(self._kept)], axis=1)
            self._y = np.concatenate([self._y, np.empty_like(self._y)], axis=1)
        keep_rows(
            now.X, now.table, now.row, A, clicks, C, self.theta, self.H_inv, self._kept, self._y,
            self._N, self._g, self._u,
        )  # fmt: skip
        for r in np.flatnonzero((GROWTH * self._fitted <= self._N) & (self._N > 0)):
            N = self._N[r]
            rows, y = self._kept[r, :N], self._y[r, :N]
            newton_unfolded(rows, y, self._ridge, self.theta[r], self.H_inv[r])
            self._fitted[r] = N

    def sample(self, now: Round, scale: float, rngs: Generators) -> Floats:
        """theta . x, (R, L), for theta ~ N(theta, scale^2 H^-1)."""
        return self.draw(now, scale, self.H_inv, rngs)


@njit_sums
def step_one(X, row, A, clicks, C, eta, theta, residual):
    """theta += eta sum_k (y_k - mu(theta . x_k)) x_k, with the theta of the round before."""
    for k in range(C):
        residual[k] = clicks[k] - sigmoid(dot(X[row[A[k]]], theta))
    for k in range(C):
        c = eta * residual[k]
        x = X[row[A[k]]]
        for i in range(theta.shape[0]):
            theta[i] += c * x[i]


@njit_views
def step_rows(X, table, row, A, clicks, C, eta, theta, residual):
    """``step_one`` for each replica."""
    for r in range(A.shape[0]):
        step_one(X[table[r]], row[r], A[r], clicks[r], C[r], eta, theta[r], residual)


class Gradient(Theta):
    """theta += eta sum_k (y_k - mu(theta . x_k)) x_k, with the theta of the round before."""

    def __init__(self, contexts: Contexts, R: int, eta: float) -> None:
        super().__init__(contexts, R)
        self._eta, self._residual = eta, np.empty(contexts.widest)

    def learn(self, t: int, now: Round, A: Ints, clicks: Ints, C: Ints) -> None:
        """A step on the first C rows of the lists A."""
        step_rows(now.X, now.table, now.row, A, clicks, C, self._eta, self.theta, self._residual)


@njit_sums
def step_gram_one(G, row, A, clicks, C, eta, z, alpha, residual):
    """``step_one`` in the space of the rows."""
    for k in range(C):
        residual[k] = clicks[k] - sigmoid(z[row[A[k]]])
    for k in range(C):
        e, c = row[A[k]], eta * residual[k]
        alpha[e] += c
        for i in range(z.shape[0]):
            z[i] += c * G[e, i]


@njit_views
def step_gram_rows(G, table, row, A, clicks, C, eta, z, alpha, residual):
    """``step_gram_one`` for each replica."""
    for r in range(A.shape[0]):
        step_gram_one(G[table[r]], row[r], A[r], clicks[r], C[r], eta, z[r], alpha[r], residual)


class GradientGram(Rows):
    """The same on z = X theta of all rows, where contexts repeat and are few.

    A step changes z by eta residual_k (X X')[:, k]; theta is X' alpha, alpha the sum of the steps
    on each row.
    """

    def __init__(self, contexts: Contexts, R: int, eta: float) -> None:
        super().__init__(contexts, R)
        self._eta, self._residual = eta, np.empty(contexts.widest)
        self._G, self._alpha = self.products(1.0), np.zeros((R, contexts.M))

    @property
    def theta(self) -> Floats:
        """(R, d)."""
        return self.combined(self._alpha)

    def learn(self, t: int, now: Round, A: Ints, clicks: Ints, C: Ints) -> None:
        """A step on the first C rows of the lists A."""
        step_gram_rows(
            self._G, now.table, now.row, A, clicks, C, self._eta, self.z, self._alpha,
            self._residual,
        )  # fmt: skip
