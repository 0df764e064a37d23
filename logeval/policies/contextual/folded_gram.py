"""Exact logistic regression on counts, in the space of the rows: for few rows that repeat.

theta is always a combination of rows, theta = X' alpha, so that nothing of length d is needed.
Newton's step in theta is H^-1 X' c with c = s - n mu(z) - ridge alpha, which changes the
predictions z = X theta by

    dz = P c,  P = X H^-1 X'

and, as H = X' W X + ridge I, alpha by (c - W dz) / ridge. A weight that moved by more than 10%
corrects P by rank one. All as in ``folded`` at a cost of rows^2 whatever d is; every ``FRESH``
rounds P and z are made anew from the weights and theta.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from logeval.policies.contextual.design import add_to_gram, centred_draw
from logeval.policies.contextual.folded import FRESH, LARGE, MOVED, SMALL, STEPS
from logeval.policies.contextual.rounds import take_rows
from logeval.policies.setting import Contexts, Round
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_views
from logeval.running.vectors import njit_sums, sigmoid


class GramFit(NamedTuple):
    """The state of all replicas, or without the first axis of one."""

    P: Floats  # (R, M, M)
    weight: Floats  # (R, M) n mu' as it is in P
    z: Floats  # (R, M)
    alpha: Floats  # (R, M) 0 where a row was not seen
    n: Floats  # (R, M) observations
    s: Floats  # (R, M) clicks
    seen: Ints  # (R, M) the rows with n > 0, in the order they came
    m: Ints  # (R,) how many


@njit_sums
def newton_gram(ridge, P, weight, z, alpha, n, s, seen, m, c, dz, g):
    """Newton's method on the m rows seen; returns the number of steps."""
    M = z.shape[0]
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


@njit_views
def learn_gram(row, A, clicks, C, ridge, fit, scratch):
    """Count the observed rows of each replica, and fit."""
    fit = GramFit(*fit)
    c, dz, g = scratch
    for r in range(A.shape[0]):
        if C[r] == 0:
            continue
        for k in range(C[r]):
            e = row[r, A[r, k]]
            if fit.n[r, e] == 0.0:
                fit.seen[r, fit.m[r]] = e
                fit.m[r] += 1
            fit.n[r, e] += 1.0
            fit.s[r, e] += clicks[r, k]
        newton_gram(
            ridge, fit.P[r], fit.weight[r], fit.z[r], fit.alpha[r], fit.n[r], fit.s[r],
            fit.seen[r], fit.m[r], c, dz, g,
        )  # fmt: skip


def renew(X: Floats, ridge: float, fit: GramFit) -> None:
    """P and z of one replica from scratch: rounding errors end here."""
    fit.z[:] = X @ (fit.alpha @ X)
    p = expit(fit.z)
    fit.weight[:] = fit.n * p * (1.0 - p)
    H = (X.T * fit.weight) @ X + ridge * np.eye(X.shape[1])
    fit.P[:] = X @ np.linalg.solve(H, X.T)


class FoldedGram:
    """Exact fits on counts of few rows that repeat."""

    def __init__(self, contexts: Contexts, R: int, ridge: float) -> None:
        first, M = contexts.at(1), contexts.M
        self._X, self._table, self._ridge = first.X, first.table, ridge
        start = np.array([X @ X.T / ridge for X in first.X])
        self.fit = GramFit(
            P=start[first.table].copy(),
            weight=np.zeros((R, M)),
            z=np.zeros((R, M)),
            alpha=np.zeros((R, M)),
            n=np.zeros((R, M)),
            s=np.zeros((R, M)),
            seen=np.zeros((R, M), dtype=np.int64),
            m=np.zeros(R, dtype=np.int64),
        )
        self._out = np.empty((R, contexts.widest))
        self._scratch = (np.empty(M), np.empty(M), np.empty(M))

    @property
    def theta(self) -> Floats:
        """X' alpha, (R, d)."""
        return np.stack([a @ self._X[i] for a, i in zip(self.fit.alpha, self._table, strict=True)])

    def scores(self, now: Round) -> Floats:
        """theta . x of the items of the round, (R, L)."""
        return take_rows(self.fit.z, now.row, self._out)

    def learn(self, t: int, now: Round, A: Ints, clicks: Ints, C: Ints) -> None:
        """Count the first C rows of the lists A, and fit."""
        if t % FRESH == 0:
            for r, table in enumerate(self._table):
                renew(self._X[table], self._ridge, GramFit(*(x[r] for x in self.fit)))
        learn_gram(now.row, A, clicks, C, self._ridge, tuple(self.fit), self._scratch)

    def sample(self, now: Round, scale: float, rngs: list[np.random.Generator]) -> Floats:
        """theta . x, (R, L), for theta ~ N(theta, scale^2 H^-1)."""
        fit, out = self.fit, self._out[:, : now.row.shape[1]]
        for r, rng in enumerate(rngs):
            X, rows = self._X[self._table[r]], now.row[r]
            drawn = centred_draw(X, self._ridge, fit.P[r], fit.weight[r], rows, rng)
            out[r] = fit.z[r, rows] + scale * drawn
        return out
