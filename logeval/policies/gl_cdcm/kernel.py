"""GL-CDCM, and LR, which is GL-CDCM without its bonus (gl-cdcm, Algorithm 1 and section 3.3).

    U(a) = min{mu(theta . x_a) + rho(t - 1) ||x_a||_{V^-1}, 1}
    rho(t) = m (k_mu sigma / c_mu) sqrt(d / 2 log(1 + t / (lambda d)) + log(1 / delta))

with k_mu = 1/4, c_mu = 1/10, sigma = 1/2, delta = 1 / sqrt(n). The K items with the largest U,
the k-th largest at the k-th most terminating position; theta from logistic regression on the
rows up to the last click. docs/contextual.md says what the paper leaves open.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from logeval.policies.contextual.base import FEATURES, LEARNING
from logeval.policies.contextual.logistic import Logistic, LogisticUCB
from logeval.policies.setting import Setting
from logeval.running.arrays import Floats
from logeval.running.kernels import njit_views
from logeval.running.vectors import sigmoid

UPDATE = ("exact", "sgd")
K_MU, C_MU, SIGMA = 0.25, 0.1, 0.5  # of the sigmoid for ||theta|| <= 1, and of a click


def rho(rows: float, d: int, lam: float, delta: float) -> float:
    """rho of equation 5 after the given number of rounds, or rows."""
    inside = d / 2 * math.log(1 + rows / (lam * d)) + math.log(1 / delta)
    return K_MU * SIGMA / C_MU * math.sqrt(inside)


@njit_views
def bound_rows(z, factor, widths, bound):
    """mu(z) + factor width."""
    for r in range(z.shape[0]):
        for a in range(z.shape[1]):
            bound[r, a] = sigmoid(z[r, a]) + factor * widths[r, a]


class GLCDCM(LogisticUCB):
    """Logistic regression with an upper confidence bound on the scale of the attraction."""

    NAME, PAPER = "GL-CDCM", "Liu et al., COCOON 2018"
    KNOWS, COST = f"horizon, {FEATURES}", "M d + L d^2; K M^2 if M <= 2 d"
    PARAMETERS: ClassVar = {
        "m": 0.1,
        "update": UPDATE,
        "ridge": 1.0,
        "eta": 0.1,
        "lam": 0.0,  # K
        "count": ("rounds", "rows"),
        "cap": ("ties-by-value", "ties-at-random"),
        **LEARNING,
    }

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, **given)
        self._rows = setting.K if self.given.count == "rows" else 1
        self._delta = 1 / math.sqrt(setting.horizon)
        self._bound = np.empty((setting.R, self._contexts.widest))

    def _scores(self, t: int) -> Floats:
        rows = rho(self._rows * (t - 1), self._contexts.d, self._lam, self._delta)
        z, widths = self._estimate.scores(self._now), self._design.widths(self._now)
        bound = self._bound[:, : z.shape[1]]
        bound_rows(z, self.given.m * rows, widths, bound)
        return np.minimum(bound, 1.0) if self.given.cap == "ties-at-random" else bound


class LR(Logistic):
    """Logistic regression that always shows what it thinks best."""

    NAME, PAPER = "LR", "Liu et al., COCOON 2018"
    COST = "M d + d^2; M^2 if M <= 2 d"
    PARAMETERS: ClassVar = {"update": UPDATE, "ridge": 0.01, "eta": 0.1, **LEARNING}

    def _scores(self, t: int) -> Floats:
        z: Floats = self._estimate.scores(self._now)
        return z  # mu is increasing: the order is the same
