"""Exact inference for chains (DCM, SDBN, DBN, CCM): which results were examined?

Up to the last click l everything was examined. Below it nothing was clicked, and the user may
have left anywhere. With n results and B_k = P(no click from k down | k examined),

    B_n = 1 - w_n,   B_k = (1 - w_k) [1 - skip + skip B_{k+1}]            (backward)
    P(l+1 examined | clicks) = stay_l B_{l+1} / (1 - stay_l + stay_l B_{l+1})
    P(k+1 examined | k examined, clicks) = skip B_{k+1} / (1 - skip + skip B_{k+1})   (forward)

Whether the user would have gone on past the end of the list is not observed and not counted. All
models need from this is in ``Tally``: expected examinations, and expected continuations after
clicks and after skips; or, from uniform numbers, how often they happened in one drawing of what
was not observed, with these probabilities. Guo, Liu, Wang: Efficient multiple-click models in web
search (WSDM 2009) for the DCM; Chapelle and Zhang (WWW 2009) for the DBN; Guo et al. (WWW 2009)
for the CCM.

Exact EM for any chain model (DCM, SDBN, DBN, CCM).

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
from logeval.clicks.estimation.beta import Split, share_of
from logeval.clicks.estimation.estimates import ModelEstimate, Options
from logeval.clicks.estimation.information import Slopes, shared_variances
from logeval.clicks.estimation.patterns import FoldedClicks
from logeval.clicks.estimation.priors import (
    Pair,
    Prior,
    Smoothing,
    evidence,
    flat_prior,
    item_prior,
    prior_over_queries,
)
from logeval.clicks.estimation.uncertain import with_uncertainty
from logeval.clicks.users.chain import Formulas, Parameters, spread
from logeval.running.arrays import Bools, Floats, Ints, sum_by
from logeval.running.kernels import njit


class Users(NamedTuple):
    """The chains of all queries: by item (I,), by group and position (G, K), and by group (G,)."""

    w: Floats
    stay_item: Floats
    stay_position: Floats
    skip: Floats


class Tally(NamedTuple):
    """Expected (or drawn) counts, by item (I,), by group and position (G, K), and by group (G,)."""

    examined: Floats  # by item
    clicked: Floats  # by item: clicks after which going on was observable
    went_on: Floats  # by item: expected continuations after those
    examined_squared: Floats  # by item: sum of P(examined | clicks)^2
    left_squared: Floats  # by item: sum of P(left after the click | clicks)^2
    position_clicked: Floats
    position_went_on: Floats
    skipped: Floats  # by group: expected examined skips, likewise
    skip_went_on: Floats
    log_likelihood: Floats  # by group

    @classmethod
    def zeros(cls, I: int, G: int, K: int) -> Tally:  # noqa: E741 - named as in the formulas
        """Nothing counted yet."""
        shapes = [(I,)] * 5 + [(G, K)] * 2 + [(G,)] * 3
        return cls(*map(np.zeros, shapes))


@njit(cache=True, nogil=True)
def tally_rows(
    items: Ints, clicks: Bools, length: Ints, count: Floats, group: Ints, active: Bools,
    users: Users, u: Floats, tally: Tally,
) -> None:  # fmt: skip
    """Add the expected counts of every pattern of an active group; with u (P, K), drawn ones."""
    w, stay_item, stay_position = users.w, users.stay_item, users.stay_position
    B = np.empty(items.shape[1] + 1)
    drawn = u.shape[0] > 0
    for p in range(items.shape[0]):
        g = group[p]
        if not active[g]:
            continue
        n, last, m = length[p], -1, count[p]
        if m == 0.0:
            continue
        for k in range(n):
            if clicks[p, k]:
                last = k
        go = users.skip[g]
        likelihood = 1.0
        total = 0.0
        for k in range(last + 1):
            i = items[p, k]
            tally.examined[i] += m
            tally.examined_squared[i] += m
            if not clicks[p, k]:
                tally.skipped[g] += m
                tally.skip_went_on[g] += m
                likelihood *= (1.0 - w[i]) * go
            else:
                likelihood *= w[i]
                if k < n - 1:
                    tally.clicked[i] += m
                    tally.position_clicked[g, k] += m
                if k < last:
                    tally.went_on[i] += m
                    tally.position_went_on[g, k] += m
                    likelihood *= stay_item[i] * stay_position[g, k]
            if likelihood < 1e-200:
                total += np.log(max(likelihood, 1e-300))
                likelihood = 1.0
        B[n] = 1.0
        for k in range(n - 1, last, -1):
            left = 0.0 if k == n - 1 else (1.0 - go) * (1.0 - B[k + 1])
            B[k] = (1.0 - w[items[p, k]]) * (B[k + 1] + left)
        remain, share = m, 1.0  # users who examine the result
        if last < 0:
            likelihood *= B[0]
        elif last < n - 1:
            i = items[p, last]
            stay = stay_item[i] * stay_position[g, last]
            none = 1.0 - stay + stay * B[last + 1]
            likelihood *= none
            share = stay * B[last + 1] / max(none, 1e-300)
            remain = share_of(m, share, u[p, last] if drawn else -1.0)
            tally.went_on[i] += remain
            tally.left_squared[i] += m * (1.0 - share) ** 2
            tally.position_went_on[g, last] += remain
        for k in range(last + 1, n):
            tally.examined[items[p, k]] += remain
            tally.examined_squared[items[p, k]] += m * share**2
            if k < n - 1:
                tally.skipped[g] += remain
                on = go * B[k + 1] / max(1.0 - go + go * B[k + 1], 1e-300)
                share *= on
                remain = share_of(remain, on, u[p, k] if drawn else -1.0)
                tally.skip_went_on[g] += remain
        tally.log_likelihood[g] += m * (total + np.log(max(likelihood, 1e-300)))


@njit(cache=True, nogil=True)
def log_likelihood_rows(
    items: Ints, clicks: Bools, length: Ints, group: Ints, users: Users, out: Floats
) -> None:
    """ln P(clicks) of every pattern; clicks that cannot happen have a very low one."""
    w, stay_item, stay_position = users.w, users.stay_item, users.stay_position
    for p in range(items.shape[0]):
        g, n, last = group[p], length[p], -1
        for k in range(n):
            if clicks[p, k]:
                last = k
        go, total = users.skip[g], 0.0
        for k in range(last + 1):
            i = items[p, k]
            likelihood = w[i] if clicks[p, k] else (1.0 - w[i]) * go
            if clicks[p, k] and k < last:
                likelihood *= stay_item[i] * stay_position[g, k]
            total += np.log(max(likelihood, 1e-12))
        none = 1.0  # P(no click from k + 1 down | k + 1 examined)
        for k in range(n - 1, last, -1):
            left = 0.0 if k == n - 1 else (1.0 - go) * (1.0 - none)
            none = (1.0 - w[items[p, k]]) * (none + left)
        if last >= 0 and last < n - 1:
            stay = stay_item[items[p, last]] * stay_position[g, last]
            none = 1.0 - stay + stay * none
        if last < n - 1:
            total += np.log(max(none, 1e-12))
        out[p] = total


def tallied(
    data: FoldedClicks,
    group: Ints,
    active: Bools,
    users: Users,
    rng: np.random.Generator | None = None,
) -> Tally:
    """The expected counts of active groups; ``group`` is the group of each query.

    With ``rng``, counts are drawn instead.
    """
    tally = Tally.zeros(data.I, len(active), data.K)
    for block in data.blocks():
        u = np.zeros((0, 0)) if rng is None else rng.random(block.items.shape)
        tally_rows(
            block.items, block.clicks, block.length, block.count, group[block.query], active,
            users, u, tally,
        )  # fmt: skip
    return tally


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

    def users(self, x: em.Params, at_items: em.Params, G: int, K: int) -> Users:
        """The chains that these parameters make."""
        shared = {f: v[:, None] if v.ndim == 1 else v for f, v in x.items() if f not in self.items}
        return Users(
            x["w"],
            spread(self.formulas.stay_item(at_items), x["w"].shape),
            spread(self.formulas.stay_position(shared), (G, K)),
            spread(self.formulas.skip(shared), (G, 1))[:, 0],
        )


class ChainClicks:
    """A chain model beside the clicks that it is fitted to."""

    def __init__(self, model: ChainEM, data: FoldedClicks, options: Options) -> None:
        self.model, self.data, self.scope = model, data, options.scope
        self.G, self.group = options.groups(data)
        self.item_group = self.group[data.item_query]

    def expected(
        self, x: em.Params, active: Bools | None = None, rng: np.random.Generator | None = None
    ) -> tuple[Tally, Counts]:
        """The expected counts at x, of active groups; or drawn ones."""
        model, data = self.model, self.data
        active = np.ones(self.G, dtype=np.bool_) if active is None else active
        at_items = model.at_items(x, self.item_group)
        users = model.users(x, at_items, self.G, data.K)
        t = tallied(data, self.group, active, users, rng)
        return t, model.counts(at_items, t, data.item_clicks, self.item_group, Split(rng))

    def maximise(
        self, x: em.Params, pseudo: dict[str, Pair], iterations: int, tolerance: float
    ) -> em.EMResult:
        """EM from x, with these pseudo-counts."""
        whole = np.arange(self.G)
        groups = {f: self.item_group if f in self.model.items else whole for f in x}

        def step(x: em.Params, active: Bools) -> tuple[em.Params, Floats]:
            t, counts = self.expected(x, active)
            likelihood = t.log_likelihood.copy()
            new = {}
            for field, (successes, trials, _) in counts.items():
                a, b = pseudo[field]
                cost = em.penalty(x[field], a, b)
                cost = cost if cost.ndim == 1 else cost.sum(axis=1)
                likelihood += sum_by(groups[field], cost, self.G)
                new[field] = em.ratio(successes + a, trials + a + b)
            return new, likelihood

        return em.run(step, x, groups, self.G, iterations, tolerance)

    def item_priors(
        self, smoothing: Smoothing, counts: dict[str, Pair], before: dict[str, Prior]
    ) -> dict[str, Prior]:
        """The priors of the item parameters from their counts, sought from those ``before``."""
        return {
            f: item_prior(smoothing, self.scope, self.data, *c, before.get(f))
            for f, c in counts.items()
        }

    def priors_over_queries(
        self, x: em.Params, items: dict[str, Prior], shared: dict[str, Pair]
    ) -> dict[str, Pair]:
        """The Betas of the shared parameters over queries, from what clicks say of each query."""
        model, pseudo = self.model, _pseudo(items, shared)
        strength = {field: a + b for field, (a, b) in pseudo.items()}
        variance = shared_variances(
            self.data, model.formulas, model.slopes, model.items, x, strength
        )
        return {
            f: prior_over_queries(*evidence(x[f], variance[f], pair)) for f, pair in shared.items()
        }


def _pseudo(items: dict[str, Prior], shared: dict[str, Pair]) -> dict[str, Pair]:
    return {field: (prior.a, prior.b) for field, prior in items.items()} | shared


def fit_chain(
    model: ChainEM, data: FoldedClicks, options: Options, start: em.Params
) -> ModelEstimate:
    """Fit by EM from ``start``; shared parameters there have one row per group."""
    clicks, smoothing = ChainClicks(model, data, options), options.smoothing
    nothing = dict.fromkeys(model.items, (np.zeros(data.I), np.zeros(data.I)))
    items = clicks.item_priors("none" if smoothing == "none" else "pyclick", nothing, {})
    shared = {
        field: flat_prior(smoothing, value.shape[1:])
        for field, value in start.items()
        if field not in model.items
    }
    x = start
    for left in range(ROUNDS if smoothing == "empirical-bayes" else 0, 0, -1):
        pseudo = _pseudo(items, shared)
        x = clicks.maximise(x, pseudo, ROUND_ITERATIONS, ROUND_TOLERANCE).params
        _, counts = clicks.expected(x)
        found = {f: counts[f].evidence(x[f]) for f in model.items}
        items = clicks.item_priors("empirical-bayes", found, items)
        if options.shrinks and shared and left <= SHARED_ROUNDS:
            shared = clicks.priors_over_queries(x, items, shared)
    pseudo = _pseudo(items, shared)
    result = clicks.maximise(x, pseudo, options.iterations, options.tolerance)

    _, counts = clicks.expected(result.params)
    if smoothing == "none":  # items never seen: the mean at the end
        items = clicks.item_priors("none", {f: counts[f][:2] for f in model.items}, items)

    def complete(x: em.Params, rng: np.random.Generator) -> dict[str, Pair]:
        return {field: count[:2] for field, count in clicks.expected(x, rng=rng)[1].items()}

    trials = {field: counts[field].trials for field in x}
    return with_uncertainty(
        model.name, data, options, result.params, complete, items, shared, trials, result,
        size=data.P * data.K, steps=model.steps,
    )  # fmt: skip
