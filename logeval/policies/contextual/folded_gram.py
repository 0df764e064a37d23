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

from logeval.policies.contextual.design import add_to_gram
from logeval.policies.contextual.folded import LARGE, MOVED, SMALL, STEPS, Counted, Counts
from logeval.policies.contextual.scores import Generators, Rows
from logeval.policies.setting import Contexts, Round
from logeval.policies.shared.memory import floats
from logeval.running.arrays import Floats
from logeval.running.kernels import njit_sums, sigmoid


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
    """Exact fits in the space of the rows."""

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
