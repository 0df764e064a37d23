"""Estimates with their uncertainty, and what a fit is asked for and gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from logeval.clicks.estimation.patterns import FoldedClicks
from logeval.clicks.estimation.priors import (
    Pair,
    Prior,
    Smoothing,
    flat_prior,
    prior_over_queries,
)
from logeval.clicks.settings import DRAWS, ITERATIONS, TOLERANCE
from logeval.running.arrays import Floats, Ints

if TYPE_CHECKING:
    from logeval.clicks.models.model import ClickModel


@dataclass(frozen=True)
class Options:
    """How to fit: the estimator, what is shared, the prior, and when EM stops."""

    method: str
    scope: str = "partial"  # "per-query", or "pooled": see ``clicks.fitted.SCOPES``
    smoothing: Smoothing = "empirical-bayes"
    iterations: int = ITERATIONS
    tolerance: float = TOLERANCE
    chosen: Mapping[str, str] = field(default_factory=dict)  # among the OPTIONS of the model
    draws: int = DRAWS  # kept of the posterior
    seed: int = 0  # of the posterior
    classes: int | str = 1  # of users; auto: by held-out SERPs
    intervals: bool = True  # without them a fit is much faster, and weights may be fractions

    def of_model(self, model: type[ClickModel]) -> dict[str, str]:
        """The options of that model, as chosen or by default."""
        return {name: self.chosen.get(name, values[0]) for name, values in model.OPTIONS.items()}

    @property
    def shrinks(self) -> bool:
        """Whether what the items of a query share is shrunk towards that of all queries."""
        return self.scope == "partial" and self.smoothing == "empirical-bayes"

    def shared_prior(self, successes: Floats, trials: Floats) -> Pair:
        """The prior of the scope of parameters that items share, (G, ...), from their counts."""
        if self.shrinks:
            return prior_over_queries(successes, trials)
        return flat_prior(self.smoothing, trials.shape[1:])

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
    draws: Floats | None = None  # (D, ...) from the joint posterior of all parameters

    @classmethod
    def known(cls, value: Floats) -> ParameterEstimate:
        """Values that were not estimated: without intervals and observations."""
        nothing = np.full(value.shape, np.nan)
        return cls(value, nothing, nothing, nothing)

    def map(self, change: Callable[[Floats], Floats]) -> ParameterEstimate:
        """All arrays changed alike; draws one by one."""
        draws = self.draws
        return ParameterEstimate(
            change(self.value),
            change(self.low),
            change(self.high),
            change(self.observations),
            None if self.raw is None else change(self.raw),
            draws if draws is None or not len(draws) else np.stack([change(d) for d in draws]),
        )


@dataclass(frozen=True)
class ModelEstimate:
    """A fitted model: an estimate per parameter, by field, and how the fit went."""

    estimates: dict[str, ParameterEstimate]
    priors: dict[str, Prior] = field(default_factory=dict)  # of the item parameters, by field
    # a + b of the other parameters, by field; alike in all groups
    shared_strength: dict[str, Floats] = field(default_factory=dict)
    iterations: int = 0
    converged: int = 0  # number of groups whose EM converged
    groups: int = 0  # number of groups fitted by EM; 0 for closed forms
    trace: list[float] = field(default_factory=list)  # total penalised ln-likelihood
    notes: list[str] = field(default_factory=list)
