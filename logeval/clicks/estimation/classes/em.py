"""EM over classes of users, around a click model of one class.

A user of query q is of class c with probability share_q(c), and clicks as the click model with the
parameters of that class. Which class the user of a pattern i was of is not observed:

    r_ic ~ share_q(c) P(clicks_i; x_c),

so the counts of class c are those of the click model itself, with n_i r_ic SERPs of each pattern.
Class and examination are latent together, every step raises the (penalised) likelihood, and the
driver of one class (``estimation.em``) serves here as well.

Random responsibilities find poor optima, so EM starts from the number of clicks: classes by its
quantiles, with some of the weight at random; of several starts the best is taken, query by query.
Classes are ordered by the clicks of their users. Priors are fitted class by class as for one class
(``ROUNDS`` times); shares are shrunk towards those of all queries by ``SHARES`` users.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from logeval.clicks.estimation import em
from logeval.clicks.estimation.classes.beside import Beside
from logeval.clicks.estimation.em import Params
from logeval.clicks.estimation.estimates import Options
from logeval.clicks.estimation.patterns import Patterns
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

ROUNDS, ROUND_ITERATIONS, ROUND_TOLERANCE = 6, 40, 1e-6
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


class ClassesEM:
    """A click model beside patterns of users in at most C classes."""

    def __init__(self, base: Beside, data: Patterns, options: Options, allowed: Bools) -> None:
        self.base, self.data, self.options, self.allowed = base, data, options, allowed
        self.G, self.group = options.groups(data)
        self.pattern_group = self.group[data.query]
        self.item_group = self.group[data.item_query]

    # -- what is not observed ----------------------------------------------------------------

    def log_likelihoods(self, users: Users) -> Floats:
        """ln share(c) P(clicks; c) of each pattern and class, (P, C)."""
        found = np.stack([self.base.log_likelihood(self.data, x) for x in users.x], axis=1)
        with np.errstate(divide="ignore"):
            return found + np.log(users.share)[self.data.query]

    def responsibilities(self, users: Users) -> tuple[Floats, Floats]:
        """P(class | clicks) of each pattern, (P, C), and ln P(clicks), (P,)."""
        joint = self.log_likelihoods(users)
        most = np.maximum.reduce(list(joint.T))  # of few columns by column, not row by row
        r = np.exp(joint - most[:, None])
        total = r @ np.ones(users.C)
        return r / total[:, None], most + np.log(total)

    def of_class(self, weight: Floats) -> Patterns:
        """The patterns as seen by users of one class."""
        return self.data.weighted(self.data.count * weight)

    def users_of(self, r: Floats) -> Floats:
        """How many users of each class each query has, (Q, C)."""
        n = self.data.count[:, None] * r
        return np.stack([sum_by(self.data.query, col, self.data.Q) for col in n.T], axis=1)

    # -- EM ------------------------------------------------------------------------------------

    def maximise(
        self, users: Users, iterations: int, tolerance: float
    ) -> tuple[Users, em.EMResult]:
        """EM from some users, with their priors."""
        whole = np.arange(self.G)
        fields = [(c, f) for c in range(users.C) for f in users.x[c]]
        groups: dict[str, Ints] = {"share": self.group}
        for c, f in fields:
            groups[f"{f}#{c}"] = self.item_group if f in self.base.items else whole
        prior = self._share_prior(users)
        pseudo = [users.pseudo(c) for c in range(users.C)]

        def unpacked(x: Params) -> Users:
            share = np.where(self.allowed, x["share"], 0.0)
            share = share / share.sum(axis=1, keepdims=True)
            each = [{f: x[f"{f}#{c}"] for cc, f in fields if cc == c} for c in range(users.C)]
            return Users(share, each)

        def step(x: Params, active: Bools) -> tuple[Params, Floats]:
            now = unpacked(x)
            r, total = self.responsibilities(now)
            r = r * active[self.pattern_group, None]
            likelihood = sum_by(self.pattern_group, self.data.count * total, self.G)
            with np.errstate(divide="ignore"):
                cost = np.where(prior > 0, prior * np.log(np.maximum(now.share, 1e-300)), 0.0)
            likelihood += sum_by(self.group, cost.sum(axis=1), self.G)
            share = self.users_of(r) + prior
            new = {"share": share / share.sum(axis=1, keepdims=True)}
            for c in range(users.C):
                counts = self.base.counts(self.of_class(r[:, c]), now.x[c])
                for f, (successes, trials) in counts.items():
                    a, b = pseudo[c][f]
                    cost = em.penalty(now.x[c][f], a, b)
                    cost = cost.reshape(len(cost), -1).sum(axis=1)
                    likelihood += sum_by(groups[f"{f}#{c}"], cost, self.G)
                    new[f"{f}#{c}"] = em.ratio(successes + a, trials + a + b)
            return new, likelihood

        packed = {f"{f}#{c}": users.x[c][f] for c, f in fields} | {"share": users.share}
        result = em.run(step, packed, groups, self.G, iterations, tolerance)
        found = unpacked(result.params)
        found.items, found.shared = users.items, users.shared
        return found, result

    def _share_prior(self, users: Users) -> Floats:
        """Pseudo-users of each class, (Q, C): as in all queries with these classes."""
        mean = np.full(users.C, 1.0 / users.C)
        if self.options.shrinks:
            mean = np.average(users.share, axis=0, weights=self.data.serps) + 1e-6
        prior = np.where(self.allowed, mean, 0.0)
        found: Floats = SHARES * prior / prior.sum(axis=1, keepdims=True)
        return found

    # -- priors ----------------------------------------------------------------------------------

    def first_priors(self, x: list[Params]) -> tuple[list[dict[str, Prior]], list[dict[str, Pair]]]:
        """Before anything is fitted: flat, and the same for all classes."""
        smoothing = self.options.smoothing
        nothing = (np.zeros(self.data.I), np.zeros(self.data.I))
        plain: Smoothing = "none" if smoothing == "none" else "pyclick"
        items = {
            f: item_prior(plain, self.options.scope, self.data, *nothing) for f in self.base.items
        }
        shared = {
            f: flat_prior(smoothing, v.shape[1:])
            for f, v in x[0].items()
            if f not in self.base.items
        }
        return [dict(items) for _ in x], [dict(shared) for _ in x]

    def fitted_priors(self, users: Users, over_queries: bool) -> Users:
        """Priors fitted to what clicks say of each class."""
        r, _ = self.responsibilities(users)
        items, shared = [], []
        for c in range(users.C):
            mine = self.of_class(r[:, c])
            found = self.base.item_evidence(mine, users.x[c])
            before = users.items[c]
            items.append({
                f: item_prior("empirical-bayes", self.options.scope, self.data, *pair,
                              before[f] if before[f].betas is not None else None)
                for f, pair in found.items()
            })  # fmt: skip
            own = users.shared[c]
            if own and over_queries and self.options.shrinks:
                pseudo = {f: (p.a, p.b) for f, p in items[c].items()} | own
                said = self.base.shared_evidence(mine, users.x[c], pseudo)
                own = {f: prior_over_queries(*pair) for f, pair in said.items()}
            shared.append(own)
        return Users(users.share, users.x, items, shared)

    # -- where it starts, and in which order ---------------------------------------------------

    def start(self, C: int, seed: int) -> Users:
        """Classes by quantiles of the number of clicks, with some weight at random."""
        rng = seeds.generator(self.options.seed, "classes", C, seed)
        r = SURE * by_clicks(self.data, C) + (1.0 - SURE) * rng.dirichlet(np.ones(C), self.data.P)
        r *= self.allowed[self.data.query]
        r /= r.sum(axis=1, keepdims=True)
        x = []
        for c in range(C):
            mine = self.of_class(r[:, c])
            own = self.base.start(mine)
            for _ in range(FIRST):
                counts = self.base.counts(mine, own)
                own = {f: em.ratio(n + 1.0, d + 2.0) for f, (n, d) in counts.items()}
            x.append(own)
        share = self.users_of(r) + self.allowed
        users = Users(share / share.sum(axis=1, keepdims=True), x)
        users.items, users.shared = self.first_priors(x)
        return users

    def best_start(self, C: int) -> Users:
        """The best of several starts, group by group, after a few steps."""
        best, likelihood = self.start(C, 0), np.full(self.G, -np.inf)
        for seed in range(STARTS if C > 1 else 1):
            users, _ = self.maximise(self.start(C, seed), ROUND_ITERATIONS, ROUND_TOLERANCE)
            _, total = self.responsibilities(users)
            now = sum_by(self.pattern_group, self.data.count * total, self.G)
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
        return self.ordered(replace(users, x=[self.base.settled(x) for x in users.x]))

    def ordered(self, users: Users) -> Users:
        """Those first who click least; in every query, or all queries alike if they are pooled."""
        r, _ = self.responsibilities(users)
        clicks = self.data.clicks.sum(axis=1)
        n = self.users_of(r)
        clicked = self.users_of(r * clicks[:, None])
        if self.options.scope == "pooled":
            n, clicked = (np.broadcast_to(v.sum(axis=0), v.shape) for v in (n, clicked))
        rate = np.where(self.allowed, clicked / np.maximum(n, 1e-9), np.inf)
        order = np.argsort(rate, axis=1, kind="stable")  # (Q, C): the class that comes c-th
        by_group = order if self.options.scope != "pooled" else order[:1]
        x = []
        for c in range(users.C):
            own = {}
            for f in users.x[0]:
                every = np.stack([x[f] for x in users.x])
                at = order[self.data.item_query, c] if f in self.base.items else by_group[:, c]
                own[f] = every[at, np.arange(every.shape[1])]
            x.append(own)
        return Users(np.take_along_axis(users.share, order, axis=1), x, users.items, users.shared)


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


def maximised(problem: ClassesEM, C: int) -> tuple[Users, em.EMResult]:
    """The users in at most C classes that fit best, with priors fitted on the way."""
    options, users = problem.options, problem.best_start(C)
    rounds = ROUNDS if options.smoothing == "empirical-bayes" else 0
    for i in range(rounds):
        users = problem.fitted_priors(problem.settled(users), over_queries=i >= 2)
        users, _ = problem.maximise(users, ROUND_ITERATIONS, ROUND_TOLERANCE)
    users, result = problem.maximise(users, options.iterations, options.tolerance)
    return problem.settled(users), result
