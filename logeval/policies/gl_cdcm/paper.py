"""GL-CDCM and LR (Liu, Li and Zhang: Contextual dependent click bandit algorithm for web
recommendation, COCOON 2018, Algorithm 1), fitted anew to all rows in every round."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit

from logeval.policies.contextual.reference import ContextualReference
from logeval.policies.shared.replica import Replica
from logeval.running.arrays import Floats, Ints


def fit_logistic(X: Floats, y: Floats, ridge: float, theta: Floats) -> Floats:
    """argmax sum y log mu + (1 - y) log(1 - mu) - ridge / 2 |theta|^2, by Newton's method."""
    for _ in range(100):
        p = expit(X @ theta)
        H = (X.T * (p * (1 - p))) @ X + ridge * np.eye(X.shape[1])
        step = np.linalg.solve(H, X.T @ (y - p) - ridge * theta)
        theta = theta + step * min(1.0, 1.0 / max(float(np.abs(X @ step).max()), 1e-300))
        if np.abs(step).max() < 1e-10:
            break
    return theta


class LR(ContextualReference):
    """Logistic regression on all that was seen; what it thinks best is shown."""

    def __init__(self, replica: Replica) -> None:
        super().__init__(replica)
        self.theta = np.zeros(self.d)

    def scores(self, t: int) -> Floats:
        """theta . x."""
        return self.x @ self.theta

    def learn(self, t: int, A: Ints, clicks: Ints) -> None:
        """Equation 4 with a ridge, or equations 14 and 15."""
        if getattr(self.given, "update", "exact") == "sgd":
            x = self.x[A]
            self.theta = self.theta + self.given.eta * (clicks - expit(x @ self.theta)) @ x
        elif len(self.X):
            self.theta = fit_logistic(self.X, self.y, self.given.ridge, self.theta)


class GLCDCM(LR):
    """gl-cdcm, Algorithm 1."""

    def scores(self, t: int) -> Floats:
        """Equation 6; with ``ties-by-value`` ties at 1 are broken by the value above it."""
        rows = t - 1 if self.given.count == "rounds" else self.K * (t - 1)
        k_mu, c_mu, sigma, delta = 0.25, 0.1, 0.5, 1 / math.sqrt(self.n)
        inside = self.d / 2 * math.log(1 + rows / (self.lam * self.d))
        rho = self.given.m * k_mu * sigma / c_mu * math.sqrt(inside + math.log(1 / delta))
        U = expit(self.x @ self.theta) + rho * self.widths(self.lam)
        return np.minimum(U, 1.0) if self.given.cap == "ties-at-random" else U
