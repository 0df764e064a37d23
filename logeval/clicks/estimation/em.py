"""Expectation-maximisation, one driver for all models.

``step`` maps parameters to better ones and gives the penalised ln-likelihood of those it was
given, by group (a query, or all of them when pooled). A group stops when its likelihood
changes by less than ``tolerance`` relative to its size; its parameters stay as they are, so a
query's fit does not depend on which other queries are fitted along with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from logeval.arrays import Bools, Floats, Ints

Params = dict[str, Floats]
Step = Callable[[Params, Bools], tuple[Params, Floats]]
CAP = 1e-6  # values stay at most 1 - CAP, so that no observation becomes impossible


@dataclass(frozen=True)
class EMResult:
    """The final parameters, iterations done, which groups converged, likelihood by iteration."""

    params: Params
    iterations: int
    converged: Bools
    trace: list[float]


def run(
    step: Step, params: Params, group: dict[str, Ints], G: int, iterations: int, tolerance: float
) -> EMResult:
    """Iterate ``step``; ``group[name]`` is the group of each row of ``params[name]``."""
    active = np.ones(G, dtype=np.bool_)
    likelihood = np.full(G, -np.inf)
    trace = []
    done = 0
    for done in range(1, iterations + 1):  # noqa: B007 - reported
        new, now = step(params, active)
        now = np.where(active, now, likelihood)
        trace.append(float(now.sum()))
        with np.errstate(invalid="ignore"):
            active &= ~(np.abs(now - likelihood) <= tolerance * np.abs(now))
        likelihood = now
        if not active.any():
            break
        for name, value in new.items():
            on = active[group[name]]
            params = {**params, name: np.where(_match(on, value), value, params[name])}
    return EMResult(params, done, ~active, trace)


def _match(on: Bools, value: Floats) -> Bools:
    return on.reshape(on.shape + (1,) * (value.ndim - 1))


def penalty(x: Floats, a: Floats | float, b: Floats | float) -> Floats:
    """a ln(x) + b ln(1 - x), nothing where the pseudo-count is zero."""
    a, b = np.broadcast_to(a, x.shape), np.broadcast_to(b, x.shape)
    up = np.log(np.maximum(x, 1e-300), where=a > 0, out=np.zeros(x.shape))
    return a * up + b * np.log1p(-np.minimum(x, 1 - 1e-16))


def ratio(num: Floats, den: Floats) -> Floats:
    """num / den, 0.5 where nothing was observed, at most 1 - CAP."""
    value = np.divide(num, den, out=np.full(num.shape, 0.5), where=den > 0)
    return np.minimum(value, 1.0 - CAP)


def warning(model: str, result: EMResult, iterations: int) -> list[str]:
    """A note where EM reached its cap."""
    late = int((~result.converged).sum())
    if not late:
        return []
    return [
        f"{model}: EM had not converged after {iterations} iterations in {late} of "
        f"{len(result.converged)} fits; raise --iterations or --tolerance"
    ]
