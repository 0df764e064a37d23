"""Logistic regression by one stochastic gradient step a round (gl-cdcm, equations 14 and 15).

    theta += eta sum_k (y_k - mu(theta . x_k)) x_k, with the theta of the round before

``Gradient`` does that. Where contexts repeat and are few, ``GradientGram`` keeps the predictions
z = X theta of all rows instead, which a step changes by eta residual_k (X X')[:, k]; theta is
X' alpha, alpha the sum of the steps on each row.
"""

from __future__ import annotations

import numpy as np

from logeval.policies.contextual.scores import Rows, Theta
from logeval.policies.setting import Contexts, Round
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import dot, njit_sums, njit_views, sigmoid


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
    """theta itself."""

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
    """z = X theta of the rows that there are."""

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
