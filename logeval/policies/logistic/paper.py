"""LogisticTS (Chapelle and Li: An empirical evaluation of Thompson sampling, NIPS 2011) and UCB-GLM
(Li, Lu and Zhou: Provably optimal algorithms for generalized linear contextual bandits, ICML 2017,
Algorithm 1), fitted anew to all rows in every round."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit

from logeval.policies.gl_cdcm.paper import LR
from logeval.running.arrays import Floats


class UCBGLM(LR):
    """UCB-GLM, Algorithm 1, with a ridge in place of its condition on V."""

    def scores(self, t: int) -> Floats:
        """theta . x + alpha ||x||."""
        if t <= self.given.tau:
            return np.zeros(len(self.x))
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
