"""LogisticTS and UCB-GLM: bandits on the scale of the logit."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from logeval.policies.contextual.base import FEATURES, LEARNING
from logeval.policies.contextual.logistic import Logistic, LogisticUCB
from logeval.policies.setting import Setting
from logeval.running.arrays import Floats

SIGMA = 0.5  # of a click
KAPPA = 0.25  # of the sigmoid at 0, as public implementations have it


class LogisticTS(Logistic):
    """theta . x for theta ~ N(theta, scale^2 H^-1), H the Hessian: the Laplace approximation."""

    NAME, PAPER = "LogisticTS", "Chapelle and Li, NIPS 2011"
    COST = "M d + d^2"
    PARAMETERS: ClassVar = {"scale": 0.5, "ridge": 1.0, **LEARNING}

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, **given)
        self._rngs = setting.generators

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
