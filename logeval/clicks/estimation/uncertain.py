"""Fitted values and what they were fitted with -> the estimate of a model, with its posterior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from logeval.clicks.estimation.em import EMResult, Params, warning
from logeval.clicks.estimation.estimates import ModelEstimate, Options, ParameterEstimate
from logeval.clicks.estimation.patterns import FoldedClicks
from logeval.clicks.estimation.posterior import Complete, beliefs, posterior
from logeval.clicks.estimation.priors import Pair, Prior
from logeval.running.arrays import Bools


def with_uncertainty(
    name: str,
    data: FoldedClicks,
    options: Options,
    x: Params,
    complete: Complete,
    items: dict[str, Prior],
    shared: Mapping[str, Pair],
    trials: Params,
    result: EMResult | None = None,
    fixed: Mapping[str, Bools] | None = None,
    size: int = 0,
    steps: int = 1,
) -> ModelEstimate:
    """The values x with their posterior, of which ``posterior`` says the rest.

    ``items`` and ``shared`` are the priors behind them, ``result`` is how EM went, if it was EM.
    """
    if options.intervals:
        believed = beliefs(data, options, items, {f: (p, trials[f]) for f, p in shared.items()})
        centred = result is not None and options.smoothing == "empirical-bayes"
        estimates = posterior(
            name, options, x, complete, believed, trials, fixed, size, steps, centred
        )
    else:
        known = {f: ParameterEstimate.known(value) for f, value in x.items()}
        estimates = {f: replace(one, observations=trials[f]) for f, one in known.items()}
    strength = {field: a + b for field, (a, b) in shared.items()}
    if result is None:
        return ModelEstimate(estimates, items, strength)
    return ModelEstimate(
        estimates,
        items,
        strength,
        result.iterations,
        int(result.converged.sum()),
        len(result.converged),
        result.trace,
        warning(name, result, options.iterations),
    )
