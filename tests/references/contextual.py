"""The policies of the contextual track, which fit or invert all rows anew in every round.

GL-CDCM and LR: Liu, Li and Zhang: Contextual dependent click bandit algorithm for web
recommendation (COCOON 2018), Algorithm 1. UCB-GLM: Li, Lu and Zhou: Provably optimal algorithms for
generalized linear contextual bandits (ICML 2017), Algorithm 1. LogisticTS: Chapelle and Li: An
empirical evaluation of Thompson sampling (NIPS 2011). CascadeLinUCB and CascadeLinTS: Zong et al.:
Cascading bandits for large-scale recommendation problems (UAI 2016). C3-UCB: Li, Wang, Zhang and
Chen: Contextual combinatorial cascading bandits (ICML 2016).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from scipy.special import expit

from logeval.running.arrays import Floats, Ints
from tests.references.replica import Replica


class ContextualReference(ABC):
    """All rows observed so far, and the list by decreasing score."""

    def __init__(self, replica: Replica) -> None:
        self.given = replica.given
        self.contexts = replica.setting.ask("contexts")
        self.r, self.K, self.n = replica.r, replica.K, replica.n
        self.d = self.contexts.d
        self.uniforms = replica.uniforms(self.contexts.widest)
        self.feedback = getattr(self.given, "feedback", "dcm")
        self.told = getattr(self.given, "order", "told") == "told"
        self.X, self.y = np.empty((0, self.d)), np.empty(0)
        self.lam = getattr(self.given, "lam", 0.0) or float(self.K)
        self.generator = replica.generator

    def recommend(self, t: int) -> Ints:
        """The items with the largest scores, the best at the most terminating position."""
        now = self.contexts.at(t)
        self.x = now.X[now.table[self.r], now.row[self.r]]
        self.arm, self.query, self.block = now.arm[self.r], now.query, now.block
        u = self.uniforms.at(t)[0][: len(self.x)]
        top = np.lexsort((-u, -self.scores(t)))[: self.K]
        A = np.empty(self.K, dtype=np.int64)
        A[now.order[self.r] if self.told else np.arange(self.K)] = top
        return A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Keep the rows that were surely examined."""
        clicked = np.flatnonzero(clicks)
        end = clicked[0 if self.feedback == "first" else -1] + 1 if len(clicked) else self.K
        self.X = np.concatenate([self.X, self.x[A[:end]]])
        self.y = np.concatenate([self.y, clicks[:end].astype(float)])
        self.learn(t, A[:end], clicks[:end])

    @abstractmethod
    def scores(self, t: int) -> Floats:
        """The score of each item of the round."""

    def learn(self, t: int, A: Ints, clicks: Ints) -> None:  # noqa: B027
        """Learn from the rows of the round, which are kept already: for who keeps more."""

    def widths(self, lam: float) -> Floats:
        """||x||_{V^-1} with V = lambda I + sum x x'."""
        V_inv = np.linalg.inv(lam * np.eye(self.d) + self.X.T @ self.X)
        return np.sqrt(np.einsum("ai,ij,aj->a", self.x, V_inv, self.x))

    def least_squares(self, lam: float) -> Floats:
        """V^-1 sum y x."""
        V = lam * np.eye(self.d) + self.X.T @ self.X
        return np.linalg.solve(V, self.X.T @ self.y)


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
        """Equation 6; ties at 1 are broken by the value above it."""
        k_mu, c_mu, sigma, delta = 0.25, 0.1, 0.5, 1 / math.sqrt(self.n)
        inside = self.d / 2 * math.log(1 + (t - 1) / (self.lam * self.d))
        rho = self.given.m * k_mu * sigma / c_mu * math.sqrt(inside + math.log(1 / delta))
        return expit(self.x @ self.theta) + rho * self.widths(self.lam)


class UCBGLM(LR):
    """UCB-GLM, Algorithm 1, with a ridge in place of its condition on V."""

    def scores(self, t: int) -> Floats:
        """theta . x + alpha ||x||."""
        sigma, kappa, delta = 0.5, 0.25, 1 / self.n
        inside = self.d / 2 * math.log(1 + 2 * self.n / self.d) + math.log(1 / delta)
        alpha = self.given.m * sigma / kappa * math.sqrt(inside)
        return self.x @ self.theta + alpha * self.widths(self.lam)


class LogisticTS(LR):
    """theta from the Laplace approximation of its posterior."""

    def scores(self, t: int) -> Floats:
        """theta . x for a draw of theta."""
        p = expit(self.X @ self.theta)
        H = (self.X.T * (p * (1 - p))) @ self.X + self.given.ridge * np.eye(self.d)
        covariance = self.given.scale**2 * np.linalg.inv(H)
        return self.x @ self.generator.multivariate_normal(self.theta, covariance)


class CascadeLinUCB(ContextualReference):
    """Zong et al., Algorithm 2."""

    def scores(self, t: int) -> Floats:
        """theta . x + c ||x||."""
        return self.x @ self.least_squares(self.lam) + self.given.c * self.widths(self.lam)


class CascadeLinTS(ContextualReference):
    """Zong et al., Algorithm 1."""

    def scores(self, t: int) -> Floats:
        """theta . x for a draw of theta."""
        V = self.lam * np.eye(self.d) + self.X.T @ self.X
        covariance = self.given.sigma**2 * np.linalg.inv(V)
        return self.x @ self.generator.multivariate_normal(self.least_squares(self.lam), covariance)


class C3UCB(ContextualReference):
    """C3-UCB with position discounts of 1."""

    def scores(self, t: int) -> Floats:
        """theta . x + beta ||x||."""
        V = self.lam * np.eye(self.d) + self.X.T @ self.X
        R, delta = 0.5, 1 / math.sqrt(self.n)
        log_det = np.linalg.slogdet(V)[1] - self.d * math.log(self.lam)
        beta = R * math.sqrt(log_det + math.log(1 / delta**2)) + math.sqrt(self.lam)
        return self.x @ self.least_squares(self.lam) + self.given.m * beta * self.widths(self.lam)
