"""The joint posterior of all parameters of a fit: intervals and draws from one place.

Gibbs sampling by data augmentation (Tanner and Wong, JASA 1987): what was not observed (who
stopped after the last click, which results were examined) is drawn given the parameters, with the
same probabilities that EM takes expectations of; then every parameter is Beta(successes + a,
failures + b) given these counts. The Betas of empirical Bayes are unknown too and wander along
(``beta_walk``). It starts at EM's values. These are modes, and too extreme where much is
latent, so with empirical Bayes the estimate is the posterior's mean. The interval of a parameter is
that of the Beta with its posterior mean and variance, with equal tails, except that it begins at 0
(ends at 1) where that Beta has at most three successes (failures); so it holds at the ends. Draws
are sweeps far apart. All parameters of a draw are of one sweep, so draws hold what they have to do
with each other.

Where there is no prior (smoothing ``none``) it is that of Jeffreys.

With classes of users one more thing is drawn, the class of every user, by P(class | clicks); then
every class completes its own clicks. Shares are drawn stick by stick: of the users that are in
class c or a later one, Beta(those in c + a, those in later ones + b) are in c, which together is a
Dirichlet. It starts at the estimate, where classes are in order; with clicks enough to tell them
apart they stay so. What is kept are draws, from which the intervals of what lists earn are made:
these hold. Shares and parameters of a class have no intervals, because clicks hardly say where one
class ends and the next begins, and intervals around one way to divide them would hold half as often
as they say (``benchmarks/classes.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

import numpy as np
from scipy.special import betaincinv, logit

from logeval.clicks.estimation.beta import Betas, BetaWalk
from logeval.clicks.estimation.driver import SHARES, Problem, Users
from logeval.clicks.estimation.em import CAP, Params
from logeval.clicks.estimation.estimates import Options, ParameterEstimate
from logeval.clicks.estimation.patterns import FoldedClicks
from logeval.clicks.estimation.priors import MIN_QUERIES, Exposure, Pair, Prior, by_place
from logeval.running import seeds
from logeval.running.arrays import Bools, Floats

BURN, SWEEPS = 50, 200
FEWEST = 80  # sweeps, where the log is large
WORK = 1_000_000_000  # results of patterns looked at, beyond which there are fewer steps
COVERAGE = 0.95
LEAST = 1e-12  # a value drawn as 0 would stay there
FEWEST_DRAWS = 40  # of the chain of several classes, of which those asked for are kept
CLASS_STEPS = 2  # of a sweep of several classes

Complete = Callable[[Params, np.random.Generator], Mapping[str, Pair]]


class Belief(Protocol):
    """What is believed of the values of a parameter before the clicks."""

    @property
    def pair(self) -> Pair:
        """Pseudo-counts that fit to its values."""

    def move(self, num: Floats, den: Floats, rng: np.random.Generator, adapt: bool) -> None:
        """Another belief that agrees with the counts."""


class Fixed:
    """A known Beta, or that of Jeffreys in place of none."""

    def __init__(self, a: Floats, b: Floats) -> None:
        none = (a + b) <= 0
        self.pair = np.where(none, 0.5, a), np.where(none, 0.5, b)

    def move(self, num: Floats, den: Floats, rng: np.random.Generator, adapt: bool) -> None:
        """It does not change."""


class OfItems:
    """The Betas over the items of each query, by their exposure."""

    def __init__(self, prior: Prior, data: FoldedClicks, scope: str) -> None:
        assert prior.betas is not None
        assert prior.own is not None
        slopes = np.arange(data.Q) if scope == "per-query" else np.zeros(data.Q, dtype=np.int64)
        self._walk = BetaWalk(prior.betas, data.offsets, prior.own, Exposure.of(data).X, slopes)

    @property
    def pair(self) -> Pair:
        """Of each item."""
        return self._walk.pair

    def move(self, num: Floats, den: Floats, rng: np.random.Generator, adapt: bool) -> None:
        """One step of the walk."""
        self._walk.move(num, den, rng, adapt)


class OfQueries:
    """The Beta over queries at each place; where few queries have it, it stays flat."""

    def __init__(self, a: Floats, b: Floats, G: int, seen: Floats) -> None:
        self._shape = (G, *a.shape)
        C = a.size
        betas = Betas(logit(a / (a + b)).ravel(), (a + b).ravel(), np.zeros((C, 0)))
        bounds = np.arange(C + 1) * (G + 1)
        many = (seen.reshape(G, -1) > 0.01).sum(axis=0) >= MIN_QUERIES
        self._walk = BetaWalk(betas, bounds, many, np.zeros((C * (G + 1), 0)))

    @property
    def pair(self) -> Pair:
        """Of each query and place."""
        a, b = (v.reshape(-1, self._shape[0] + 1)[:, 0] for v in self._walk.pair)
        place = self._shape[1:]
        return np.broadcast_to(a.reshape(place), self._shape), np.broadcast_to(
            b.reshape(place), self._shape
        )

    def move(self, num: Floats, den: Floats, rng: np.random.Generator, adapt: bool) -> None:
        """One step of the walk."""
        num, den, _ = by_place(num, den)
        self._walk.move(num, den, rng, adapt)


def beliefs(
    data: FoldedClicks,
    options: Options,
    items: Mapping[str, Prior],
    shared: Mapping[str, tuple[Pair, Floats]],
) -> dict[str, Belief]:
    """The beliefs behind a fit: of items, and of what they share, given prior and trials."""
    found: dict[str, Belief] = {}
    for field, prior in items.items():
        fitted = prior.betas is not None
        found[field] = OfItems(prior, data, options.scope) if fitted else Fixed(prior.a, prior.b)
    for field, ((a, b), trials) in shared.items():
        whole = [np.broadcast_to(x, trials.shape) for x in (a, b)]
        found[field] = OfQueries(a, b, len(trials), trials) if options.shrinks else Fixed(*whole)
    return found


def posterior(
    name: str,
    options: Options,
    x: Params,
    complete: Complete,
    believed: Mapping[str, Belief],
    observations: Params,
    fixed: Mapping[str, Bools] | None = None,
    size: int = 0,
    steps: int = 1,
    centred: bool = False,
) -> dict[str, ParameterEstimate]:
    """The estimates x, or the means of the posterior (``centred``), with intervals and draws.

    ``complete`` draws what was not observed and gives the counts of every parameter. Values that
    are ``fixed`` stay. A sweep has that many ``steps``, each of which looks at ``size`` results,
    and one of them moves the beliefs (all of them at first, when these come from far away); more
    of them make sweeps less alike.
    """
    rng = seeds.generator(options.seed, "posterior", name)
    steps = max(min(steps, WORK // max(size * (BURN + SWEEPS), 1)), 1)
    affordable = WORK // max(size, 1)
    burn, sweeps = (BURN, SWEEPS) if affordable >= BURN + SWEEPS else (FEWEST // 4, FEWEST)
    sweeps = max(sweeps, options.draws)
    kept = {field: np.zeros((options.draws, *v.shape)) for field, v in x.items()}
    sums = {field: [np.zeros(v.shape), np.zeros(v.shape)] for field, v in x.items()}
    last = burn + (np.arange(options.draws) + 1) * sweeps // max(options.draws, 1) - 1
    now = {field: np.clip(v, LEAST, 1.0 - CAP) for field, v in x.items()}
    pairs = {field: belief.pair for field, belief in believed.items()}
    for step in range((burn + sweeps) * steps):
        sweep, rest = divmod(step, steps)
        drawn, last_step = {}, sweep >= burn and rest == steps - 1
        for field, (successes, trials) in complete(now, rng).items():
            if rest == 0 or sweep < burn:
                believed[field].move(successes, trials, rng, sweep < burn)
                pairs[field] = believed[field].pair
            a = successes + pairs[field][0]
            b = np.maximum(trials - successes, 0.0) + pairs[field][1]
            drawn[field] = np.clip(rng.beta(a, b), LEAST, 1.0 - CAP)
            if last_step:  # mean and mean square given these counts, rather than those of one draw
                mean = a / (a + b)
                sums[field][0] += mean
                sums[field][1] += mean * (a + 1.0) / (a + b + 1.0)
        for field, stays in (fixed or {}).items():
            drawn[field] = np.where(stays, x[field], drawn[field])
        now = drawn
        if last_step:
            for field, v in now.items():
                kept[field][last == sweep] = v
    found = {}
    for field, value in x.items():
        mean, square = (total / sweeps for total in sums[field])
        if fixed and field in fixed:
            mean, square = (
                np.where(fixed[field], value**n, x) for n, x in ((1, mean), (2, square))
            )
        point = mean if centred else value
        found[field] = interval(point, mean, square, observations[field], kept[field])
    return found


def interval(
    value: Floats, mean: Floats, square: Floats, observations: Floats, draws: Floats
) -> ParameterEstimate:
    """The estimate with the interval of the Beta that has that mean, and mean square."""
    spread = mean * (1.0 - mean)
    variance = np.clip(square - mean**2, 0.0, spread)
    known = variance <= 1e-14 * np.maximum(mean, LEAST)
    strength = np.divide(spread, variance, out=np.ones(mean.shape), where=~known) - 1.0
    a, b = (np.maximum(p * strength, 1e-6) for p in (mean, 1.0 - mean))
    inner_a, inner_b = (np.clip(x - 3.0, 0.0, 1.0) for x in (a, b))
    below = (1 - COVERAGE) / 2 * (1.0 + inner_a - inner_b)  # nothing where 0 cannot be ruled out
    # the mean is outside only of what is very skewed
    ends = (
        np.minimum(betaincinv(a, b, below), mean),
        np.maximum(betaincinv(a, b, below + COVERAGE), mean),
    )
    low, high = (np.where(known, value, end).astype(np.float64) for end in ends)
    return ParameterEstimate(value, low, high, observations, draws=draws)


# -- of all users ------------------------------------------------------------------------------


def to_sticks(share: Floats) -> Floats:
    """The share of class c among c and the later ones, (Q, C - 1)."""
    later = _later(share)
    return np.divide(share, later, out=np.full(share.shape, 0.5), where=later > 0)[:, :-1]


def to_shares(sticks: Floats) -> Floats:
    """Back, (..., C)."""
    one = np.ones((*sticks.shape[:-1], 1))
    before = np.concatenate([one, np.cumprod(1.0 - sticks, axis=-1)], axis=-1)
    found: Floats = before * np.concatenate([sticks, one], axis=-1)
    return found


def _later(share: Floats) -> Floats:
    return np.cumsum(share[:, ::-1], axis=1)[:, ::-1]


def with_uncertainty(
    name: str, problem: Problem, users: Users
) -> tuple[ParameterEstimate, list[dict[str, ParameterEstimate]]]:
    """The shares (Q, C), and the parameters of each class, with intervals and draws.

    Draws of several classes, and of one class its intervals, too.
    """
    options, base, C = problem.options, problem.base, users.C
    trials, in_class = _trials(problem, users)
    if not options.intervals:
        known = [
            {f: _kept(v, trials[f"{f}#{c}"], None) for f, v in x.items()}
            for c, x in enumerate(users.x)
        ]
        return _kept(users.share, in_class, None), known
    believed: dict[str, Belief] = {}
    for c in range(C):
        shared = {f: (pair, trials[f"{f}#{c}"]) for f, pair in users.shared[c].items()}
        every = beliefs(problem.data, options, users.items[c], shared)
        believed |= {f"{f}#{c}": belief for f, belief in every.items()}
    x = users.packed()
    fixed = {f"{f}#{c}": v for f, v in base.fixed.items() for c in range(C)}
    if C == 1:

        def complete(x: Params, rng: np.random.Generator) -> dict[str, Pair]:
            own = problem.unpacked(x, users.share).x[0]
            counts, _ = base.expected(problem.data, own, rng=rng)
            return {f"{f}#0": count[:2] for f, count in counts.items()}

        centred = base.latent and options.smoothing == "empirical-bayes"
        found = posterior(
            name, options, x, complete, believed, trials, fixed, base.size, base.steps, centred
        )
        draws = np.ones((options.draws, *users.share.shape))
        return _kept(users.share, in_class, draws), [{f: found[f"{f}#0"] for f in users.x[0]}]
    mean = np.where(problem.allowed, np.maximum(users.share.mean(axis=0), 1e-3), 0.0)
    mean = SHARES * mean / mean.sum(axis=1, keepdims=True)
    less = (_later(mean) - mean)[:, :-1]
    believed["sticks"] = Fixed(np.maximum(mean[:, :-1], 1e-3), np.maximum(less, 1e-3))
    x["sticks"], trials["sticks"] = to_sticks(users.share), _later(in_class)[:, :-1]
    asked = replace(options, draws=max(options.draws, FEWEST_DRAWS))
    size = problem.data.P * problem.data.K * C
    found = posterior(name, asked, x, _dealing(problem), believed, trials, fixed, size, CLASS_STEPS)
    kept = np.linspace(0, asked.draws - 1, options.draws).astype(np.int64)
    drawn = {f: np.asarray(estimate.draws)[kept] for f, estimate in found.items()}
    shares = np.where(problem.allowed, to_shares(drawn["sticks"]), 0.0)
    shares /= shares.sum(axis=2, keepdims=True)
    parts = [
        {f: _kept(v, trials[f"{f}#{c}"], drawn[f"{f}#{c}"]) for f, v in own.items()}
        for c, own in enumerate(users.x)
    ]
    return _kept(users.share, in_class, shares), parts


def _trials(problem: Problem, users: Users) -> tuple[Params, Floats]:
    """Observations of each value, by name and class, and users by query and class."""
    trials: Params = {}
    for c, mine in enumerate(problem.dealt(users)):
        counts, _ = problem.base.expected(mine, users.x[c])
        trials |= {f"{f}#{c}": count.trials for f, count in counts.items()}
    if users.C == 1:
        return trials, problem.data.serps[:, None]
    return trials, problem.users_of(problem.responsibilities(users)[0])


def _dealing(problem: Problem) -> Complete:
    """How the clicks of several classes are completed: users are dealt to them first."""
    data = problem.patterns
    n = data.count.astype(np.int64)

    def complete(x: Params, rng: np.random.Generator) -> dict[str, Pair]:
        now = problem.unpacked(x, to_shares(x["sticks"]))
        r, _ = problem.responsibilities(now)
        dealt = rng.multinomial(n, r / r.sum(axis=1, keepdims=True)).astype(float)
        counts: dict[str, Pair] = {}
        for c in range(now.C):
            found, _ = problem.base.expected(data.weighted(dealt[:, c]), now.x[c], rng=rng)
            counts |= {f"{f}#{c}": count[:2] for f, count in found.items()}
        in_class = problem.users_of(dealt / np.maximum(data.count, 1.0)[:, None])
        return counts | {"sticks": (in_class[:, :-1], _later(in_class)[:, :-1])}

    return complete


def _kept(value: Floats, observations: Floats, draws: Floats | None) -> ParameterEstimate:
    """An estimate without an interval."""
    unknown = np.full_like(value, np.nan)
    return ParameterEstimate(value, unknown, unknown, observations, draws=draws)
