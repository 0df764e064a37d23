"""Estimates with their uncertainty, and what a fit is asked for and gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaincinv, expit, logit

from logeval.arrays import Floats, Ints
from logeval.clicks.estimation.em import CAP
from logeval.clicks.estimation.patterns import FoldedClicks
from logeval.clicks.estimation.priors import Prior, Smoothing, flat_prior, prior_over_queries

if TYPE_CHECKING:
    from logeval.clicks.models.model import ClickModel

LEVEL = 0.95
Z = 1.959963984540054  # the normal quantile of (1 + LEVEL) / 2


@dataclass(frozen=True)
class Options:
    """How to fit: the estimator, what is shared, the prior, and when EM stops."""

    method: str
    scope: str = "partial"  # "per-query", or "pooled": see ``clicks.fitted.SCOPES``
    smoothing: Smoothing = "empirical-bayes"
    iterations: int = 10_000
    tolerance: float = 1e-9
    chosen: Mapping[str, str] = field(default_factory=dict)  # among the OPTIONS of the model

    def of_model(self, model: type[ClickModel]) -> dict[str, str]:
        """The options of that model, as chosen or by default."""
        return {name: self.chosen.get(name, values[0]) for name, values in model.OPTIONS.items()}

    @property
    def shrinks(self) -> bool:
        """Whether what the items of a query share is shrunk towards that of all queries."""
        return self.scope == "partial" and self.smoothing == "empirical-bayes"

    def counted_shared(self, successes: Floats, trials: Floats) -> tuple[ParameterEstimate, Floats]:
        """Parameters that items share, (G, ...), from counts and the prior of the scope.

        And the a + b of that prior on which their intervals rely, (...).
        """
        prior, caution = flat_prior(self.smoothing, trials.shape[1:]), np.ones(trials.shape[1:])
        if self.shrinks:
            prior, caution = prior_over_queries(successes, trials)
        return counted(successes, trials, *prior, caution), caution * (prior[0] + prior[1])

    def groups(self, data: FoldedClicks) -> tuple[int, Ints]:
        """How many sets of shared parameters there are, and the set of each query, (Q,)."""
        if self.scope == "pooled":
            return 1, np.zeros(data.Q, dtype=np.int64)
        return data.Q, np.arange(data.Q)


@dataclass(frozen=True)
class ParameterEstimate:
    """Values with 95% intervals and the (expected) number of observations; equal shapes."""

    value: Floats
    low: Floats
    high: Floats
    observations: Floats
    raw: Floats | None = None  # the plain estimate, where a convention replaced it


@dataclass(frozen=True)
class EstimationResult:
    """A fitted model: an estimate per parameter, by field, and how the fit went."""

    estimates: dict[str, ParameterEstimate]
    priors: dict[str, Prior] = field(default_factory=dict)  # of the item parameters, by field
    # a + b of the other parameters, by field, as far as intervals rely on it; alike in all groups
    shared_strength: dict[str, Floats] = field(default_factory=dict)
    iterations: int = 0
    converged: int = 0  # number of groups whose EM converged
    groups: int = 0  # number of groups fitted by EM; 0 for closed forms
    trace: list[float] = field(default_factory=list)  # total penalised ln-likelihood
    notes: list[str] = field(default_factory=list)


def counted(
    successes: Floats,
    trials: Floats,
    a: Floats | float,
    b: Floats | float,
    caution: Floats | float = 1.0,
) -> ParameterEstimate:
    """The posterior mean and interval of a probability: Beta(successes + a, failures + b).

    The interval relies on the share ``caution`` of the prior. Without a prior (a = b = 0) the value
    is the plain ratio and the interval that of Jeffreys.
    """
    a, b = np.broadcast_to(a, successes.shape), np.broadcast_to(b, successes.shape)
    failures = np.maximum(trials - successes, 0.0)
    total = trials + a + b
    value = np.divide(successes + a, total, out=np.full(successes.shape, 0.5), where=total > 0)
    flat = (a + b) <= 0
    shape_a = successes + np.where(flat, 0.5, a * caution)
    shape_b = failures + np.where(flat, 0.5, b * caution)
    low = betaincinv(shape_a, shape_b, (1 - LEVEL) / 2)
    high = betaincinv(shape_a, shape_b, (1 + LEVEL) / 2)
    return ParameterEstimate(value, np.minimum(low, value), np.maximum(high, value), trials)


def around(value: Floats, variance: Floats, observations: Floats) -> ParameterEstimate:
    """The interval of a probability from the variance of its logit.

    At 0 and 1 the logit is infinite; there the interval is that of Jeffreys for no success, or no
    failure, in all observations. A variance of 0 marks a value that is fixed.
    """
    z = logit(np.clip(value, 1e-12, 1 - 1e-12))
    half = Z * np.sqrt(np.maximum(variance, 0.0))
    low, high = expit(z - half), expit(z + half)
    unknown = ~np.isfinite(half)
    low, high = np.where(unknown, 0.0, low), np.where(unknown, 1.0, high)
    n = np.maximum(np.nan_to_num(observations), 0.0)
    rare = betaincinv(0.5, n + 0.5, (1 - LEVEL) / 2), betaincinv(0.5, n + 0.5, (1 + LEVEL) / 2)
    free = half > 0
    zero, one = free & (value < 2 * CAP), free & (value > 1 - 2 * CAP)
    low = np.where(
        zero, np.minimum(rare[0], value), np.where(one, np.minimum(1 - rare[1], value), low)
    )
    high = np.where(
        zero, np.maximum(rare[1], value), np.where(one, np.maximum(1 - rare[0], value), high)
    )
    return ParameterEstimate(value, low, high, observations)
