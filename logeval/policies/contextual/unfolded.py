"""Logistic regression where contexts do not repeat: all rows are kept.

They are fitted again when they have grown by 5%; in between each round makes one Newton step on
its own rows.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from logeval.policies.contextual.design import add_to_inverse
from logeval.policies.contextual.folded import LARGE, SMALL, STEPS
from logeval.policies.contextual.scores import Generators, Theta
from logeval.policies.setting import Contexts, Round
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import dot, njit_sums, njit_views, sigmoid

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
    """Fits on all rows, for contexts that do not repeat."""

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
