"""Models whose parameters are ratios of counts: nothing is latent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from logeval.clicks.estimation.em import Params, ratio
from logeval.clicks.estimation.estimates import ModelEstimate, Options
from logeval.clicks.estimation.patterns import FoldedClicks
from logeval.clicks.estimation.priors import Pair, Prior, item_prior
from logeval.clicks.estimation.uncertain import with_uncertainty


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
