"""CascadeLinUCB and CascadeLinTS (Zong et al.: Cascading bandits for large-scale recommendation
problems, UAI 2016), and C3-UCB (Li, Wang, Zhang and Chen: Contextual combinatorial cascading
bandits, ICML 2016), with a new inverse in every round."""

from __future__ import annotations

import math

import numpy as np

from logeval.policies.contextual.reference import ContextualReference
from logeval.running.arrays import Floats


class CascadeLinUCB(ContextualReference):
    """Zong et al., Algorithm 2."""

    def scores(self, t: int) -> Floats:
        """theta . x + c ||x||."""
        d, nK, c = self.d, self.n * self.K, self.given.c
        theory = math.sqrt(d * math.log(1 + nK / d) + 2 * math.log(nK)) + 1
        width = (theory if c == "theory" else float(c)) * self.widths(self.lam)
        return self.x @ self.least_squares(self.lam) + width


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
