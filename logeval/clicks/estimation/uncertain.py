"""Fitted values and what they were fitted with -> the estimate of a model, with its posterior.

Models whose parameters are ratios of counts: nothing is latent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from logeval.clicks.estimation.em import EMResult, Params, ratio, warning
from logeval.clicks.estimation.estimates import ModelEstimate, Options, ParameterEstimate
from logeval.clicks.estimation.patterns import FoldedClicks
from logeval.clicks.estimation.posterior import Complete, beliefs, posterior
from logeval.clicks.estimation.priors import Pair, Prior, item_prior
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


class Ratios(NamedTuple):
    """The values of counted parameters, and the priors in them."""

    values: Params
    items: dict[str, Prior]
    shared: dict[str, Pair]


def ratios(
    data: FoldedClicks, options: Options, items: Mapping[str, Pair], shared: Mapping[str, Pair]
) -> Ratios:
    """(successes + a) / (trials + a + b) of item parameters and of shared ones."""
    priors = {f: item_prior(options.smoothing, options.scope, data, *c) for f, c in items.items()}
    over = {field: options.shared_prior(*c) for field, c in shared.items()}
    pairs = {f: (p.a, p.b) for f, p in priors.items()} | over
    values = {}
    for field, (successes, trials) in {**items, **shared}.items():
        a, b = pairs[field]
        values[field] = ratio(successes + a, trials + a + b, 1.0)
    return Ratios(values, priors, over)


def fit_counts(
    name: str,
    data: FoldedClicks,
    options: Options,
    items: Mapping[str, Pair],
    shared: Mapping[str, Pair] | None = None,
) -> ModelEstimate:
    """A model of such parameters."""
    counts = {**items, **(shared or {})}
    found = ratios(data, options, items, shared or {})
    trials = {field: den for field, (_, den) in counts.items()}
    return with_uncertainty(
        name, data, options, found.values, lambda x, rng: counts, found.items, found.shared, trials
    )
