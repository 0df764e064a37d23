"""Exact logistic regression where contexts repeat: equal rows are folded into counts.

n_e observations and s_e clicks of row e. Newton's method starts from the last theta with an inverse
Hessian that is corrected by rank one where a weight n_e mu' moved by more than 10%, and inverted
afresh every ``FRESH`` rounds. The gradient is always the true one, so the Hessian's error costs
steps, not accuracy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from logeval.policies.contextual.design import add_to_inverse
from logeval.policies.contextual.scores import Generators, Theta
from logeval.policies.setting import Contexts, Round
from logeval.policies.shared.memory import allocate, floats, ints, plain, view_of
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
    """Exact fits in the space of theta."""

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
