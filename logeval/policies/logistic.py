"""GL-CDCM, LR, LogisticTS and UCB-GLM: attraction is a logistic function of theta . x.

theta is fitted to the rows up to the last click (``logistic_fits``). GL-CDCM (gl-cdcm, Algorithm 1)
shows the K items with the largest

    U(a) = min{mu(theta . x_a) + rho(t - 1) ||x_a||_{V^-1}, 1}
    rho(t) = m (k_mu sigma / c_mu) sqrt(d / 2 log(1 + t / (lambda d)) + log(1 / delta))

with k_mu = 1/4, c_mu = 1/10, sigma = 1/2, delta = 1 / sqrt(n), the k-th largest at the k-th most
terminating position. LR is GL-CDCM without its bonus (section 3.3). docs/contextual.md says what
the paper leaves open.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from logeval.policies.contextual import FEATURES, LEARNING, ContextualPolicy, design, few_rows
from logeval.policies.logistic_fits import Folded, FoldedGram, Gradient, GradientGram, Unfolded
from logeval.policies.setting import Contexts, Setting
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_views, sigmoid


def exact(contexts: Contexts, R: int, ridge: float) -> Folded | FoldedGram | Unfolded:
    """The maximum of the objective, the way that costs less."""
    if not contexts.repeat:
        return Unfolded(contexts, R, ridge)
    return FoldedGram(contexts, R, ridge) if few_rows(contexts) else Folded(contexts, R, ridge)


def sgd(contexts: Contexts, R: int, eta: float) -> Gradient | GradientGram:
    """Stochastic gradient steps, the way that costs less."""
    return GradientGram(contexts, R, eta) if few_rows(contexts) else Gradient(contexts, R, eta)


class Logistic(ContextualPolicy):
    """theta by logistic regression, with a ``ridge``; with ``update=sgd`` by steps of eta."""

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given)
        if getattr(self.given, "update", "exact") == "sgd":
            self._estimate: Any = sgd(self._contexts, setting.R, self.given.eta)
        else:
            self._estimate = exact(self._contexts, setting.R, self.given.ridge)

    @property
    def theta(self) -> Floats:
        """The estimate of theta, (R, d)."""
        theta: Floats = self._estimate.theta
        return theta

    def _learn(self, t: int, A: Ints, clicks: Ints, C: Ints) -> None:
        self._estimate.learn(t, self._now, A, clicks, C)


class LogisticUCB(Logistic):
    """The same with the widths ||x||_{V^-1}, V_0 = lambda I, for upper confidence bounds."""

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, **given)
        self._lam = self.given.lam or float(setting.K)
        self._design = design(self._contexts, setting.R, self._lam)

    def _learn(self, t: int, A: Ints, clicks: Ints, C: Ints) -> None:
        super()._learn(t, A, clicks, C)
        self._design.add(self._now, A, clicks, C)


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


KAPPA = 0.25  # of the sigmoid at 0, as public implementations have it


class LogisticTS(Logistic):
    """theta . x for theta ~ N(theta, scale^2 H^-1), H the Hessian: the Laplace approximation."""

    NAME, PAPER = "LogisticTS", "Chapelle and Li, NIPS 2011"
    COST = "M d + d^2"
    PARAMETERS: ClassVar = {"scale": 0.5, "ridge": 1.0, **LEARNING}

    def _scores(self, t: int) -> Floats:
        drawn: Floats = self._estimate.sample(self._now, self.given.scale, self._rngs)
        return drawn


class UCBGLM(LogisticUCB):
    """theta . x + alpha ||x||_{V^-1} (Li, Lu and Zhou 2017, Algorithm 1), V_0 = lambda I.

    alpha = m (sigma / kappa) sqrt(d / 2 log(1 + 2 n / d) + log(1 / delta)) with sigma = 1/2,
    kappa = 1/4 and delta = 1 / n. Before that ``tau`` rounds are random; their condition that V
    has no eigenvalue below 1 by then cannot hold when the contexts do not span all dimensions,
    which is why V and the fit have a ridge here.
    """

    NAME, PAPER = "UCB-GLM", "Li et al., ICML 2017"
    KNOWS, COST = f"horizon, {FEATURES}", "M d + L d^2; K M^2 if M <= 2 d"
    PARAMETERS: ClassVar = {"m": 0.1, "tau": 0, "ridge": 1.0, "lam": 1.0, **LEARNING}

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, **given)
        d, n = self._contexts.d, setting.horizon
        inside = d / 2 * math.log(1 + 2 * n / d) + math.log(n)
        self._alpha = self.given.m * SIGMA / KAPPA * math.sqrt(inside)

    def _scores(self, t: int) -> Floats:
        z: Floats = self._estimate.scores(self._now)
        if t <= self.given.tau:
            return np.zeros_like(z)  # ties: a random list
        return z + self._alpha * self._design.widths(self._now)
