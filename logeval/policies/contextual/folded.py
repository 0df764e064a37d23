"""Exact logistic regression where contexts repeat: equal rows are folded into counts.

n_e observations and s_e clicks of row e. Newton's method starts from the last theta with an inverse
Hessian that is corrected by rank one where a weight n_e mu' moved by more than 10%, and inverted
afresh every ``FRESH`` rounds. The gradient is always the true one, so the Hessian's error costs
steps, not accuracy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from logeval.policies.contextual.design import add_to_inverse
from logeval.policies.contextual.rounds import inner_rows
from logeval.policies.setting import Contexts, Round
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_views
from logeval.running.vectors import dot, njit_sums, sigmoid

MOVED = 0.1  # relative change of a weight that is worth a correction
FRESH = 500  # rounds between two inversions of the Hessian
SMALL = 3e-4  # largest change of a prediction in the last Newton step
LARGE = 1.0  # and in any step: mu' changes by less than a factor e, so the step goes down
STEPS = 50


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


@njit_sums
def newton_folded(X, ridge, theta, H_inv, weight, z, n, s, seen, m, g, step, u, dz):
    """Newton's method on the m rows seen, from theta; returns the number of steps."""
    d = theta.shape[0]
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


@njit_views
def learn_folded(X, table, row, A, clicks, C, ridge, fit, scratch):
    """Count the observed rows of each replica, and fit."""
    fit = Fit(*fit)
    g, step, u, dz = scratch
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
            fit.seen[r], fit.m[r], g, step, u, dz,
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
        self._scratch = (np.empty(d), np.empty(d), np.empty(d), np.empty(M))

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
        learn_folded(
            now.X, now.table, now.row, A, clicks, C, self._ridge, tuple(self.fit), self._scratch
        )

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
