"""CascadeLinUCB and CascadeLinTS (Zong et al.: Cascading bandits for large-scale recommendation
problems, UAI 2016), and C3-UCB (Li, Wang, Zhang and Chen: Contextual combinatorial cascading
bandits, ICML 2016), with a new inverse in every round."""

from __future__ import annotations

import math

import numpy as np

from logeval.policies.contextual.reference import ContextualReference
from logeval.policies.shared.replica import Replica
from logeval.running.arrays import Floats


class CascadeLinUCB(ContextualReference):
    """Zong et al., Algorithm 2."""

    def __init__(
        self, replica: Replica, *, c: str = "0.5", lam: float = 1.0, feedback: str = "dcm",
        order: str = "told",
    ) -> None:  # fmt: skip
        super().__init__(replica, feedback, order)
        nK = self.n * self.K
        theory = math.sqrt(self.d * math.log(1 + nK / self.d) + 2 * math.log(nK)) + 1
        self.c, self.lam = theory if c == "theory" else float(c), lam

    def scores(self, t: int) -> Floats:
        """theta . x + c ||x||."""
        return self.x @ self.least_squares(self.lam) + self.c * self.widths(self.lam)


class CascadeLinTS(ContextualReference):
    """Zong et al., Algorithm 1."""

    def __init__(
        self, replica: Replica, *, sigma: float = 0.25, lam: float = 1.0, feedback: str = "dcm",
        order: str = "told",
    ) -> None:  # fmt: skip
        super().__init__(replica, feedback, order)
        self.sigma, self.lam, self.generator = sigma, lam, replica.generator

    def scores(self, t: int) -> Floats:
        """theta . x for a draw of theta."""
        V = self.lam * np.eye(self.d) + self.X.T @ self.X
        covariance = self.sigma**2 * np.linalg.inv(V)
        return self.x @ self.generator.multivariate_normal(self.least_squares(self.lam), covariance)


class C3UCB(ContextualReference):
    """C3-UCB with position discounts of 1."""

    def __init__(
        self, replica: Replica, *, m: float = 0.1, lam: float = 0.0, feedback: str = "first",
        order: str = "told",
    ) -> None:  # fmt: skip
        super().__init__(replica, feedback, order)
        self.m, self.lam = m, lam or float(self.K)

    def scores(self, t: int) -> Floats:
        """theta . x + beta ||x||."""
        V = self.lam * np.eye(self.d) + self.X.T @ self.X
        R, delta = 0.5, 1 / math.sqrt(self.n)
        log_det = np.linalg.slogdet(V)[1] - self.d * math.log(self.lam)
        beta = R * math.sqrt(log_det + math.log(1 / delta**2)) + math.sqrt(self.lam)
        return self.x @ self.least_squares(self.lam) + self.m * beta * self.widths(self.lam)
