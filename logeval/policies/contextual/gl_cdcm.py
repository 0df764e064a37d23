"""GL-CDCM, and LR, which is GL-CDCM without its bonus (gl-cdcm, Algorithm 1 and section 3.3).

    U(a) = min{mu(theta . x_a) + rho(t - 1) ||x_a||_{V^-1}, 1}
    rho(t) = m (k_mu sigma / c_mu) sqrt(d / 2 log(1 + t / (lambda d)) + log(1 / delta))

with k_mu = 1/4, c_mu = 1/10, sigma = 1/2, delta = 1 / sqrt(n). The K items with the largest U,
the k-th largest at the k-th most terminating position; theta from logistic regression on the
rows up to the last click. docs/contextual.md says what the paper leaves open.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from logeval.arrays import Floats, Ints
from logeval.policies.contextual.base import ContextualPolicy
from logeval.policies.contextual.design import design
from logeval.policies.contextual.logistic import estimate
from logeval.policies.contextual.rounds import sigmoid_rows
from logeval.policies.setting import Setting

K_MU, C_MU, SIGMA = 0.25, 0.1, 0.5  # of the sigmoid for ||theta|| <= 1, and of a click


def rho(rows: float, d: int, lam: float, delta: float) -> float:
    """rho of equation 5 after so many rounds, or rows."""
    inside = d / 2 * math.log(1 + rows / (lam * d)) + math.log(1 / delta)
    return K_MU * SIGMA / C_MU * math.sqrt(inside)


class Logistic(ContextualPolicy):
    """The mean of LR and GL-CDCM: theta by logistic regression."""

    def __init__(
        self, setting: Setting, feedback: str, order: str, update: str, ridge: float, eta: float
    ) -> None:
        super().__init__(setting, feedback, order)
        self._estimate = estimate(self._contexts, setting.R, update, ridge, eta)
        self._p = np.empty((setting.R, self._contexts.widest))

    @property
    def theta(self) -> Floats:
        """The estimate of theta, (R, d)."""
        return self._estimate.theta

    def _means(self) -> Floats:
        z = self._estimate.scores(self._now)
        p = self._p[:, : z.shape[1]]
        sigmoid_rows(z, p)
        return p


class LR(Logistic):
    """Logistic regression that always shows what it thinks best."""

    PARAMETERS: ClassVar = {
        "update": ("exact", "sgd"),
        "ridge": float,
        "eta": float,
        "feedback": ("dcm", "literal", "first"),
        "order": ("told", "assumed"),
    }

    def __init__(
        self,
        setting: Setting,
        *,
        update: str = "exact",
        ridge: float = 0.01,
        eta: float = 0.1,
        feedback: str = "dcm",
        order: str = "told",
    ) -> None:
        super().__init__(setting, feedback, order, update, ridge, eta)

    def _scores(self, t: int) -> Floats:
        return self._estimate.scores(self._now)  # mu is increasing: the order is the same

    def _learn(self, t: int, A: Ints, clicks: Ints, C: Ints) -> None:
        self._estimate.learn(t, self._now, A, clicks, C)


class GLCDCM(Logistic):
    """Logistic regression with an upper confidence bound."""

    PARAMETERS: ClassVar = {
        "m": float,
        "update": ("exact", "sgd"),
        "ridge": float,
        "eta": float,
        "lam": float,
        "count": ("rounds", "rows"),
        "cap": ("ties-by-value", "ties-at-random"),
        "feedback": ("dcm", "literal", "first"),
        "order": ("told", "assumed"),
    }

    def __init__(
        self,
        setting: Setting,
        *,
        m: float = 0.1,
        update: str = "exact",
        ridge: float = 1.0,
        eta: float = 0.1,
        lam: float = 0.0,
        count: str = "rounds",
        cap: str = "ties-by-value",
        feedback: str = "dcm",
        order: str = "told",
    ) -> None:
        super().__init__(setting, feedback, order, update, ridge, eta)
        self._m, self._lam = m, lam or float(setting.K)  # lambda >= K
        self._rows = setting.K if count == "rows" else 1
        self._delta = 1 / math.sqrt(setting.horizon)
        self._capped = cap == "ties-at-random"
        self._design = design(self._contexts, setting.R, self._lam)

    def _scores(self, t: int) -> Floats:
        factor = self._m * rho(self._rows * (t - 1), self._contexts.d, self._lam, self._delta)
        bound = self._means() + factor * self._design.widths(self._now)
        return np.minimum(bound, 1.0) if self._capped else bound

    def _learn(self, t: int, A: Ints, clicks: Ints, C: Ints) -> None:
        self._estimate.learn(t, self._now, A, clicks, C)
        self._design.add(self._now, A, clicks, C)
