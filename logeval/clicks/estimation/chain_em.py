"""Exact EM for any chain model (DCM, SDBN, DBN, CCM).

A model says, by ``ChainEM``, how its parameters make a chain (its ``Formulas``) and which
expected counts (successes, trials) each of them has, given the ``Tally`` of that chain. The
maximisation is then (successes + a) / (trials + a + b) for every parameter.

Empirical Bayes fits the Beta of an item parameter x to its counts. Expected counts must not be
used for this: they look as certain as observed ones, though part of the evidence is missing. So
the Beta is fitted to the counts with the gradient and curvature of the likelihood in logit x,
which by Louis (1982) are successes - trials x and trials x (1 - x) - missing, where missing is
the variance of successes - trials x given the clicks. These depend on the prior in turn, so the
two alternate ``ROUNDS`` times before the prior is held fixed and EM runs to convergence. In the
last ``SHARED_ROUNDS`` of them, the scope ``partial`` also fits the Beta of the shared parameters
over queries, to the evidence that their variances leave (``priors.evidence``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from logeval.clicks.estimation import em
from logeval.clicks.estimation.binomial import Split
from logeval.clicks.estimation.chain_inference import Tally, tally
from logeval.clicks.estimation.chain_information import Slopes, variances
from logeval.clicks.estimation.estimates import EstimationResult, Options
from logeval.clicks.estimation.patterns import FoldedClicks
from logeval.clicks.estimation.posterior import beliefs, posterior
from logeval.clicks.estimation.priors import (
    Pair,
    Prior,
    Smoothing,
    evidence,
    flat_prior,
    item_prior,
    prior_over_queries,
)
from logeval.clicks.models.chain import Formulas, Parameters, spread
from logeval.running.arrays import Bools, Floats, Ints, sum_by

ROUNDS, SHARED_ROUNDS = 10, 4
ROUND_ITERATIONS, ROUND_TOLERANCE = 50, 1e-7


class Count(NamedTuple):
    """Expected successes and trials; for item parameters also the missing information."""

    successes: Floats
    trials: Floats
    missing: Floats | None = None

    def evidence(self, x: Floats) -> tuple[Floats, Floats]:
        """Observed counts with the same gradient and curvature in logit x."""
        assert self.missing is not None
        spread = np.maximum(x * (1.0 - x), 1e-12)
        trials = np.maximum(self.trials - self.missing / spread, 0.0)
        successes = trials * x + self.successes - self.trials * x
        return np.clip(successes, 0.0, trials), trials


Counts = dict[str, Count]


def examination(x: Parameters, t: Tally, clicks: Floats) -> Count:
    """The counts of attraction: clicks, of expected examinations."""
    return Count(clicks, t.examined, x["w"] ** 2 * (t.examined - t.examined_squared))


@dataclass(frozen=True)
class ChainEM:
    """A chain model as EM sees it.

    ``counts`` gets the parameters as each item sees them (``at_items``), the tally, the clicks of
    each item, its group, and how what is not observed is split: as expected, or by drawing.
    """

    name: str
    items: tuple[str, ...]  # fields of item parameters, the others are shared
    formulas: Formulas
    counts: Callable[[Parameters, Tally, Floats, Ints, Split], Counts]
    slopes: Slopes
    steps: int = 3  # of a sweep of the posterior

    def at_items(self, x: em.Params, group: Ints) -> em.Params:
        """The parameters that each item has: its own, and the scalars of its group."""
        own = {field: x[field] for field in self.items}
        scalars = {f: v[group] for f, v in x.items() if f not in self.items and v.ndim == 1}
        return own | scalars

    def tally(
        self,
        data: FoldedClicks,
        group: Ints,
        active: Bools,
        x: em.Params,
        at_items: em.Params,
        rng: np.random.Generator | None = None,
    ) -> Tally:
        """The expected counts of the chain that these parameters make, or drawn ones."""
        G = len(active)
        shared = {f: v[:, None] if v.ndim == 1 else v for f, v in x.items() if f not in self.items}
        stay_item = spread(self.formulas.stay_item(at_items), x["w"].shape)
        stay_position = spread(self.formulas.stay_position(shared), (G, data.K))
        skip = spread(self.formulas.skip(shared), (G, 1))[:, 0]
        return tally(data, group, active, x["w"], stay_item, stay_position, skip, rng)


def fit_chain(
    model: ChainEM, data: FoldedClicks, options: Options, start: em.Params
) -> EstimationResult:
    """Fit by EM from ``start``; shared parameters there have one row per group."""
    G, group = options.groups(data)
    item_group = group[data.item_query]
    groups = {field: item_group if field in model.items else np.arange(G) for field in start}
    clicks = data.item_clicks
    shared = {
        field: flat_prior(options.smoothing, value.shape[1:])
        for field, value in start.items()
        if field not in model.items
    }

    def pseudo(priors: dict[str, Prior]) -> dict[str, Pair]:
        return {f: (p.a, p.b) for f, p in priors.items()} | shared

    def variances_at(x: em.Params, priors: dict[str, Prior]) -> dict[str, Floats]:
        strength = {field: a + b + 0.0 * x[field] for field, (a, b) in pseudo(priors).items()}
        items, others = ({f: x[f] for f in x if (f in model.items) == i} for i in (True, False))
        return variances(data, group, model.formulas, model.slopes, items, others, strength)

    everyone = np.ones(G, dtype=np.bool_)

    def expected(
        x: em.Params, active: Bools = everyone, rng: np.random.Generator | None = None
    ) -> tuple[Tally, Counts]:
        at_items = model.at_items(x, item_group)
        t = model.tally(data, group, active, x, at_items, rng)
        return t, model.counts(at_items, t, clicks, item_group, Split(rng))

    def maximise(
        x: em.Params, priors: dict[str, Prior], iterations: int, tolerance: float
    ) -> em.EMResult:
        weights = pseudo(priors)

        def step(x: em.Params, active: Bools) -> tuple[em.Params, Floats]:
            t, counts = expected(x, active)
            likelihood = t.log_likelihood.copy()
            new = {}
            for field, (successes, trials, _) in counts.items():
                a, b = weights[field]
                cost = em.penalty(x[field], a, b)
                cost = cost if cost.ndim == 1 else cost.sum(axis=1)
                likelihood += sum_by(groups[field], cost, G)
                new[field] = em.ratio(successes + a, trials + a + b)
            return new, likelihood

        return em.run(step, x, groups, G, iterations, tolerance)

    def item_priors(smoothing: Smoothing, counts: dict[str, Pair]) -> dict[str, Prior]:
        return {
            f: item_prior(smoothing, options.scope, data, *c, priors.get(f))
            for f, c in counts.items()
        }

    x = start
    priors: dict[str, Prior] = {}
    nothing = dict.fromkeys(model.items, (np.zeros(data.I), np.zeros(data.I)))
    priors = item_priors("none" if options.smoothing == "none" else "pyclick", nothing)
    if options.smoothing == "empirical-bayes":
        for left in range(ROUNDS, 0, -1):
            x = maximise(x, priors, ROUND_ITERATIONS, ROUND_TOLERANCE).params
            _, counts = expected(x)
            found = {f: counts[f].evidence(x[f]) for f in model.items}
            priors = item_priors("empirical-bayes", found)
            if options.shrinks and shared and left <= SHARED_ROUNDS:
                spread = variances_at(x, priors)
                for field, prior in shared.items():
                    shared[field] = prior_over_queries(*evidence(x[field], spread[field], prior))
    result = maximise(x, priors, options.iterations, options.tolerance)

    x = result.params
    _, counts = expected(x)
    if options.smoothing == "none":  # items never seen: the mean at the end
        priors = item_priors("none", {f: counts[f][:2] for f in model.items})
    trials = {field: counts[field].trials for field in x}

    def complete(x: em.Params, rng: np.random.Generator) -> dict[str, Pair]:
        return {field: count[:2] for field, count in expected(x, rng=rng)[1].items()}

    believed = beliefs(data, options, priors, {f: (p, trials[f]) for f, p in shared.items()})
    return EstimationResult(
        posterior(
            model.name,
            options,
            x,
            complete,
            believed,
            trials,
            size=data.P * data.K,
            steps=model.steps,
        ),
        priors,
        {field: a + b for field, (a, b) in shared.items()},
        result.iterations,
        int(result.converged.sum()),
        G,
        result.trace,
        em.warning(model.name, result, options.iterations),
    )
