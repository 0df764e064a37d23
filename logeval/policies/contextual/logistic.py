"""Logistic regression that follows the clicks: the ways to keep theta up to date.

The objective is sum over observed rows of y log mu + (1 - y) log(1 - mu) - ridge / 2 |theta|^2
(gl-cdcm, equation 4, with a ridge because the plain equation has no solution while the clicks can
be separated).

- ``folded``: exact, where contexts repeat. Equal rows are counts; Newton's method in d dimensions,
  d^2 + rows d for a step.
- ``folded_gram``: the same where rows are few, in the space of the rows, rows^2 for a step.
- ``unfolded``: where contexts do not repeat. All rows, fitted again when they have grown by 5%; in
  between a round makes one Newton step on its own rows.
- ``gradient``: one stochastic gradient step a round (equations 14 and 15).

All have ``theta``, ``scores`` and ``learn``; the exact ones know the Hessian H, and ``sample``
theta . x for theta ~ N(theta, scale^2 H^-1).
"""

from __future__ import annotations

from typing import Any

from logeval.policies.contextual.base import ContextualPolicy
from logeval.policies.contextual.design import design
from logeval.policies.contextual.folded import Folded
from logeval.policies.contextual.folded_gram import FoldedGram
from logeval.policies.contextual.gradient import Gradient, GradientGram
from logeval.policies.contextual.scores import few_rows
from logeval.policies.contextual.unfolded import Unfolded
from logeval.policies.setting import Contexts, Setting
from logeval.running.arrays import Floats, Ints


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
