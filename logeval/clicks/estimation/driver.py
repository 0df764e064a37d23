"""Users of a click model in C classes, fitted to clicks; one class is C = 1.

A user of query q is of class c with probability share_q(c), and clicks as the click model with the
parameters of that class. Which class the user of a pattern i was of is not observed:

    r_ic ~ share_q(c) P(clicks_i; x_c),

so the counts of class c are those of the click model itself (``latent``), with n_i r_ic SERPs of
each pattern. Class and examination are latent together, and every step of EM raises the (penalised)
likelihood.

Values and priors depend on each other: with empirical Bayes they alternate ``ROUNDS`` times before
EM runs to convergence. In the last ``SHARED_ROUNDS`` of them, the scope ``partial`` also fits the
Beta of the shared parameters over queries. Shares are shrunk towards those of all queries by
``SHARES`` users.

Random responsibilities find poor optima, so several classes start from the number of clicks: by its
quantiles, with some of the weight at random; of several starts the best is taken, query by query.
Classes are ordered by the clicks of their users.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from logeval.clicks.estimation import em
from logeval.clicks.estimation.em import Params
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.latent import Counts, Latent
from logeval.clicks.estimation.patterns import FoldedClicks, Patterns
from logeval.clicks.estimation.priors import (
    Pair,
    Prior,
    Smoothing,
    flat_prior,
    item_prior,
    prior_over_queries,
)
from logeval.running import seeds
from logeval.running.arrays import Bools, Floats, Ints, sum_by

ROUNDS, SHARED_ROUNDS = 6, 4
ROUND_ITERATIONS, ROUND_TOLERANCE = 40, 1e-6
FIRST = 10  # steps of each class by itself, from the classes that EM starts with
STARTS = 3
SURE = 0.7  # of the weight at the start, by the number of clicks; the rest at random
SHARES = 10.0  # users


@dataclass
class Users:
    """The classes of users of all queries: values by field and class, and shares."""

    share: Floats  # (Q, C); 0: the query has no such class
    x: list[Params]
    items: list[dict[str, Prior]] = field(default_factory=list)  # priors, of each class
    shared: list[dict[str, Pair]] = field(default_factory=list)

    @property
    def C(self) -> int:
        """The number of classes."""
        return len(self.x)

    def pseudo(self, c: int) -> dict[str, Pair]:
        """The pseudo-counts of class c."""
        return {f: (p.a, p.b) for f, p in self.items[c].items()} | self.shared[c]

    def packed(self) -> Params:
        """All values by name and class, as EM and the sampler have them."""
        return {f"{f}#{c}": v for c, x in enumerate(self.x) for f, v in x.items()}


class Problem:
    """A click model beside clicks of users in at most C classes."""

    def __init__(self, base: Latent, data: FoldedClicks, options: Options, allowed: Bools) -> None:
        self.base, self.data, self.options, self.allowed = base, data, options, allowed
        self.C, self.G, self.group = allowed.shape[1], base.G, base.group
        self.item_group = base.item_group
        self._always = np.ones(self.G, dtype=np.bool_)

    @property
    def patterns(self) -> Patterns:
        """The clicks in memory, as several classes need them."""
        assert isinstance(self.data, Patterns)
        return self.data

    @property
    def pattern_group(self) -> Ints:
        """The group of each pattern."""
        return self.group[self.patterns.query]

    # -- what is not observed ----------------------------------------------------------------

    def responsibilities(self, users: Users, active: Bools | None = None) -> tuple[Floats, Floats]:
        """P(class | clicks) of each pattern, (P, C), and ln P(clicks), (P,)."""
        data, active = self.patterns, self._always if active is None else active
        each = [self.base.log_likelihood(data, x, active) for x in users.x]
        with np.errstate(divide="ignore"):
            joint = np.stack(each, axis=1) + np.log(users.share)[data.query]
        most = np.maximum.reduce(list(joint.T))  # of few columns by column, not row by row
        r = np.exp(joint - most[:, None])
        total = r @ np.ones(users.C)
        return r / total[:, None], most + np.log(total)

    def of_classes(self, r: Floats | None) -> list[FoldedClicks]:
        """The clicks as the users of each class made them; None: there is one class."""
        if r is None:
            return [self.data]
        return [self.patterns.weighted(self.patterns.count * column) for column in r.T]

    def dealt(self, users: Users) -> list[FoldedClicks]:
        """The same, by the responsibilities."""
        return self.of_classes(None if users.C == 1 else self.responsibilities(users)[0])

    def users_of(self, r: Floats) -> Floats:
        """How many users of each class each query has, (Q, C)."""
        n = self.patterns.count[:, None] * r
        return np.stack([sum_by(self.patterns.query, col, self.data.Q) for col in n.T], axis=1)

    def unpacked(self, x: Params, share: Floats) -> Users:
        """The users of packed values, and shares that need not add up."""
        each: list[Params] = [{} for _ in range(self.C)]
        for name, value in x.items():
            f, mark, c = name.partition("#")
            if mark:
                each[int(c)][f] = value
        share = np.where(self.allowed, share, 0.0)
        return Users(share / share.sum(axis=1, keepdims=True), each)

    # -- EM ------------------------------------------------------------------------------------

    def maximise(
        self, users: Users, iterations: int, tolerance: float
    ) -> tuple[Users, em.EMResult]:
        """EM from some users, with their priors."""
        base, whole, C = self.base, np.arange(self.G), users.C
        packed, prior = users.packed(), self._share_prior(users)
        groups = {
            name: self.item_group if name.partition("#")[0] in base.items else whole
            for name in packed
        }
        pseudo = [users.pseudo(c) for c in range(C)]
        fixed = {f: value for f, value in base.fixed.items() if value.any()}
        if C > 1:
            packed["share"], groups["share"] = users.share, self.group

        def costs(c: int, x: Params) -> Floats:
            likelihood = np.zeros(self.G)
            for f, v in x.items():
                cost = em.penalty(v, *pseudo[c][f])
                cost = np.where(fixed[f], 0.0, cost) if f in fixed else cost
                likelihood += sum_by(
                    groups[f"{f}#{c}"], cost.reshape(len(v), -1).sum(axis=1), self.G
                )
            return likelihood

        def step(x: Params, active: Bools) -> tuple[Params, Floats]:
            now, new, r = self.unpacked(x, x.get("share", users.share)), {}, None
            likelihood = np.zeros(self.G)
            if C > 1:
                r, total = self.responsibilities(now, active)
                r *= active[self.pattern_group, None]
                likelihood += sum_by(self.pattern_group, self.patterns.count * total, self.G)
                with np.errstate(divide="ignore"):
                    cost = np.where(prior > 0, prior * np.log(np.maximum(now.share, 1e-300)), 0.0)
                likelihood += sum_by(self.group, cost.sum(axis=1), self.G)
                share = self.users_of(r) + prior
                new["share"] = share / share.sum(axis=1, keepdims=True)
            for c, mine in enumerate(self.of_classes(r)):
                counts, own = base.expected(mine, now.x[c], active)
                likelihood += costs(c, now.x[c]) + (own if C == 1 else 0.0)
                for f, (successes, trials, _) in counts.items():
                    a, b = pseudo[c][f]
                    value = em.ratio(successes + a, trials + a + b)
                    new[f"{f}#{c}"] = (
                        np.where(fixed[f], now.x[c][f], value) if f in fixed else value
                    )
            return new, likelihood

        result = em.run(step, packed, groups, self.G, iterations, tolerance)
        found = self.unpacked(result.params, result.params.get("share", users.share))
        return replace(found, items=users.items, shared=users.shared), result

    def _share_prior(self, users: Users) -> Floats:
        """Pseudo-users of each class, (Q, C): as in all queries with these classes."""
        mean = np.full(users.C, 1.0 / users.C)
        if self.options.shrinks:
            mean = np.average(users.share, axis=0, weights=self.data.serps) + 1e-6
        prior = np.where(self.allowed, mean, 0.0)
        found: Floats = SHARES * prior / prior.sum(axis=1, keepdims=True)
        return found

    # -- priors ----------------------------------------------------------------------------------

    def _item_priors(
        self, smoothing: Smoothing, counts: dict[str, Pair], before: dict[str, Prior]
    ) -> dict[str, Prior]:
        """The priors of the item parameters from their counts, sought from those ``before``."""
        known = {f: p for f, p in before.items() if p.betas is not None}
        return {
            f: item_prior(smoothing, self.options.scope, self.data, *pair, known.get(f))
            for f, pair in counts.items()
        }

    def with_flat_priors(self, users: Users) -> Users:
        """Before anything is fitted: the same for all classes."""
        smoothing, nothing = self.options.smoothing, np.zeros(self.data.I)
        plain: Smoothing = "none" if smoothing == "none" else "pyclick"
        items = self._item_priors(plain, dict.fromkeys(self.base.items, (nothing, nothing)), {})
        shared = {
            f: flat_prior(smoothing, v.shape[1:])
            for f, v in users.x[0].items()
            if f not in self.base.items
        }
        return replace(users, items=[items] * users.C, shared=[shared] * users.C)

    def with_fitted_priors(self, users: Users, over_queries: bool) -> Users:
        """Priors fitted to what clicks say of each class."""
        items, shared = [], []
        for c, mine in enumerate(self.dealt(users)):
            found = self.base.item_evidence(mine, users.x[c])
            items.append(self._item_priors("empirical-bayes", found, users.items[c]))
            own = users.shared[c]
            if own and over_queries and self.options.shrinks:
                pseudo = {f: (p.a, p.b) for f, p in items[c].items()} | own
                said = self.base.shared_evidence(mine, users.x[c], pseudo)
                own = {f: prior_over_queries(*pair) for f, pair in said.items()}
            shared.append(own)
        return replace(users, items=items, shared=shared)

    def with_means(self, users: Users) -> Users:
        """Without a prior: items never seen have the mean of those that were."""
        if self.options.smoothing != "none":
            return users
        items = []
        for c, mine in enumerate(self.dealt(users)):
            counts, _ = self.base.expected(mine, users.x[c])
            pairs = {f: counts[f][:2] for f in self.base.items}
            items.append(self._item_priors("none", pairs, {}))
        return replace(users, items=items)

    # -- where it starts, and in which order ---------------------------------------------------

    def start(self, seed: int) -> Users:
        """Classes by quantiles of the number of clicks, with some weight at random."""
        one = np.ones((self.data.Q, 1))
        if self.C == 1:
            return self.with_flat_priors(Users(one, [self.base.start(self.data)]))
        data, C = self.patterns, self.C
        rng = seeds.generator(self.options.seed, "classes", C, seed)
        r = SURE * by_clicks(data, C) + (1.0 - SURE) * rng.dirichlet(np.ones(C), data.P)
        r *= self.allowed[data.query]
        r /= r.sum(axis=1, keepdims=True)
        x = []
        for mine in self.of_classes(r):
            own = self.base.start(mine)
            for _ in range(FIRST):
                counts, _ = self.base.expected(mine, own)
                own = {f: em.ratio(n + 1.0, d + 2.0) for f, (n, d, _) in counts.items()}
            x.append(own)
        share = self.users_of(r) + self.allowed
        return self.with_flat_priors(Users(share / share.sum(axis=1, keepdims=True), x))

    def best_start(self) -> Users:
        """The best of several starts, group by group, after a few steps."""
        best, likelihood = self.start(0), np.full(self.G, -np.inf)
        for seed in range(STARTS):
            users, _ = self.maximise(self.start(seed), ROUND_ITERATIONS, ROUND_TOLERANCE)
            _, total = self.responsibilities(users)
            now = sum_by(self.pattern_group, self.patterns.count * total, self.G)
            best = self._chosen(now > likelihood, users, best)
            likelihood = np.maximum(now, likelihood)
        return best

    def _chosen(self, on: Bools, new: Users, old: Users) -> Users:
        """The new users of the groups that are on, the old ones of the others."""
        x = []
        for mine, other in zip(new.x, old.x, strict=True):
            both = {}
            for f, v in mine.items():
                where = on[self.item_group] if f in self.base.items else on
                both[f] = np.where(where.reshape(-1, *[1] * (v.ndim - 1)), v, other[f])
            x.append(both)
        share = np.where(on[self.group][:, None], new.share, old.share)
        return Users(share, x, new.items, new.shared)

    def settled(self, users: Users) -> Users:
        """On the scale on which parameters are reported, those first who click least."""
        scaled = [self.base.settled(x, users.C == 1) for x in users.x]
        return self.ordered(replace(users, x=scaled))

    def ordered(self, users: Users) -> Users:
        """Those first who click least; in every query, or all queries alike if they are pooled."""
        if users.C == 1:
            return users
        r, _ = self.responsibilities(users)
        clicks = self.patterns.clicks.sum(axis=1)
        n = self.users_of(r)
        clicked = self.users_of(r * clicks[:, None])
        if self.options.scope == "pooled":
            n, clicked = (np.broadcast_to(v.sum(axis=0), v.shape) for v in (n, clicked))
        rate = np.where(self.allowed, clicked / np.maximum(n, 1e-9), np.inf)
        order = np.argsort(rate, axis=1, kind="stable")  # (Q, C): the class that comes c-th
        by_group = order if self.options.scope != "pooled" else order[:1]
        x: list[Params] = [{} for _ in users.x]
        for f in users.x[0]:
            every = np.stack([x[f] for x in users.x])
            for c in range(users.C):
                at = order[self.data.item_query, c] if f in self.base.items else by_group[:, c]
                x[c][f] = every[at, np.arange(every.shape[1])]
        return replace(users, share=np.take_along_axis(users.share, order, axis=1), x=x)

    # -- all of it -----------------------------------------------------------------------------

    def fitted(self) -> tuple[Users, em.EMResult | None]:
        """The users that fit best, with priors fitted on the way."""
        options, base = self.options, self.base
        users = self.start(0) if self.C == 1 else self.best_start()
        if options.smoothing == "empirical-bayes":
            if self.C == 1 and base.latent:
                users, _ = self.maximise(users, ROUND_ITERATIONS, ROUND_TOLERANCE)
            rounds = ROUNDS if self.C > 1 or base.latent else 1
            for left in range(rounds, 0, -1):
                users = self.with_fitted_priors(self.settled(users), left <= SHARED_ROUNDS)
                if left > 1:
                    users, _ = self.maximise(users, ROUND_ITERATIONS, ROUND_TOLERANCE)
        if self.C == 1 and not base.latent:
            return self.with_means(self._ratios(users)), None
        users, result = self.maximise(users, options.iterations, options.tolerance)
        settled = self.settled(users)
        if self.C == 1 and settled.x[0] is not users.x[0]:  # brought to its scale
            settled, result = self.maximise(settled, options.iterations, options.tolerance)
        return self.with_means(settled), result

    def _ratios(self, users: Users) -> Users:
        """Counted parameters, which may be 1."""
        counts: Counts = self.base.expected(self.data, users.x[0])[0]
        pseudo, x = users.pseudo(0), {}
        for f, (n, d, _) in counts.items():
            a, b = pseudo[f]
            x[f] = em.ratio(n + a, d + a + b, 1.0)
        return replace(users, x=[x])


def by_clicks(data: Patterns, C: int) -> Floats:
    """Classes of equal size by the number of clicks, (P, C); on a border, a part of both."""
    clicks = data.clicks.sum(axis=1)
    size = sum_by(clicks, data.count, data.K + 1) / max(float(data.count.sum()), 1.0)
    end = np.cumsum(size)
    low, high = (end - size)[clicks], end[clicks]
    edges = np.arange(C + 1) / C
    inside = np.minimum(high[:, None], edges[1:]) - np.maximum(low[:, None], edges[:-1])
    inside = np.maximum(inside, 0.0)
    total = inside.sum(axis=1, keepdims=True)
    return np.where(total > 0, inside / np.where(total > 0, total, 1.0), 1.0 / C)
