"""CascadeLinUCB, CascadeLinTS and C3-UCB: attraction is a linear function of the context.

theta = V^-1 sum y x with V = lambda I + sum x x' (sigma = 1 in the papers' notation).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from logeval.policies.contextual import FEATURES, LEARNING, ContextualPolicy, Design
from logeval.policies.setting import Setting
from logeval.running.arrays import Floats, Ints

R = 0.5  # a click is 1/2-sub-Gaussian


class Linear(ContextualPolicy):
    """Least squares with a ridge."""

    COST = "L d^2"

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given)
        self._lam = self.given.lam or float(setting.K)
        self._design = Design(self._contexts, setting.R, self._lam)

    def _learn(self, t: int, A: Ints, clicks: Ints, C: Ints) -> None:
        self._design.add(self._now, A, clicks, C)


class CascadeLinUCB(Linear):
    """Least squares with an upper confidence bound.

    min{theta . x + c ||x||_{V^-1}, 1} (Zong et al. 2016, Algorithm 2), V_0 = I. Ties at the cap are
    broken by the uncapped value.
    """

    NAME, PAPER = "CascadeLinUCB", "Zong et al., UAI 2016"
    PARAMETERS: ClassVar = {"c": 0.5, "lam": 1.0, **LEARNING}

    def _scores(self, t: int) -> Floats:
        return self._design.scores(self._now) + self.given.c * self._design.widths(self._now)


class CascadeLinTS(Linear):
    """A draw of theta from N(V^-1 sum y x, sigma^2 V^-1) (Zong et al. 2016, Algorithm 1)."""

    NAME, PAPER = "CascadeLinTS", "Zong et al., UAI 2016"
    COST = "M d + L d^2; d^3 where contexts do not repeat"
    PARAMETERS: ClassVar = {"sigma": 0.25, "lam": 1.0, **LEARNING}

    def _scores(self, t: int) -> Floats:
        return self._design.sample(self._now, self.given.sigma, self._rngs)


class C3UCB(Linear):
    """Least squares with a bonus that follows det V.

    theta . x + beta ||x||_{V^-1} with
    beta = m (R sqrt(log(det V / (lambda^d delta^2))) + sqrt(lambda)), R = 1/2 for a click and
    delta = 1 / sqrt(n); lambda >= K, the sum of squared discounts. Their position discounts are all
    1, as a DCM has none; they learn up to the first click.
    """

    NAME, PAPER = "C3-UCB", "Li et al., ICML 2016"
    KNOWS, READS = f"horizon, {FEATURES}", "up to the first click"
    PARAMETERS: ClassVar = {
        "m": 0.1,
        "lam": 0.0,  # K
        **LEARNING,
        "feedback": ("first", "dcm"),
    }

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, **given)
        self._log_n = math.log(setting.horizon)

    def _scores(self, t: int) -> Floats:
        beta = R * np.sqrt(self._design.log_det + self._log_n) + math.sqrt(self._lam)
        widths = self._design.widths(self._now)
        return self._design.scores(self._now) + self.given.m * beta[:, None] * widths
