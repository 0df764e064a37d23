"""What EM and the posterior need of a click model, whatever it is.

A step of EM, or of the posterior, gives every parameter (successes + a) / (trials + a + b), or a
draw of that Beta, from counts of what was not observed: expected, or drawn. Models differ in these
counts and in the likelihood of a pattern.

Priors are fitted to what clicks say of a parameter. Expected counts must not be used for this: they
look as certain as observed ones, though part of the evidence is missing. With the logit of x as the
coordinate the gradient of the likelihood is successes - trials x (Fisher's identity), and minus its
curvature trials x (1 - x) - missing, where missing is the variance of successes - trials x given
the clicks (Louis, 1982). Counts with the same gradient and curvature are the evidence.

Of a parameter that the items of a query share, the items being unknown, the curvature is what is
left when these are eliminated: with J minus the second derivatives, the Schur complement

    J_ss - J_si (J_ii + prior)^-1 J_is.

J_s. are differences of the gradient, a step of EM for each place. Of J_ii there is the diagonal:
items meet only in the places that they share, or further down a list.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from logeval.clicks.estimation.em import Params
from logeval.clicks.estimation.priors import Pair, evidence
from logeval.running.arrays import Bools, Floats, sum_by

if TYPE_CHECKING:
    from logeval.clicks.estimation.estimates import ModelEstimate, Options
    from logeval.clicks.estimation.patterns import FoldedClicks, Patterns

STEP = 1e-5  # of a logit, in differences of the gradient
MOST_QUERIES = 2_000  # whose shared parameters a prior is fitted to, the most frequent first
Pseudo = Mapping[str, Pair]


class Count(NamedTuple):
    """Expected successes and trials; for item parameters also the missing information."""

    successes: Floats
    trials: Floats
    missing: Floats | None = None

    def evidence(self, x: Floats) -> Pair:
        """Observed counts with the same gradient and curvature in logit x."""
        spread = np.maximum(x * (1.0 - x), 1e-12)
        missing = 0.0 if self.missing is None else self.missing
        trials = np.maximum(self.trials - missing / spread, 0.0)
        successes = trials * x + self.successes - self.trials * x
        return np.clip(successes, 0.0, trials), trials


Counts = dict[str, Count]


Finish = Callable[["FoldedClicks", "ModelEstimate"], "ModelEstimate"]


class Latent(ABC):
    """A click model beside the clicks that it is fitted to, which may have weights.

    Shared parameters have one row per group: a query, or all of them when pooled.
    """

    items: tuple[str, ...]  # fields of item parameters, the others are shared
    latent = True  # whether there is anything to expect
    steps = 1  # of a sweep of the posterior
    size = 0  # results that such a step looks at

    def __init__(self, data: FoldedClicks, options: Options, finish: Finish | None = None) -> None:
        self.options, self.K, self._finish = options, data.K, finish
        self.G, self.group = options.groups(data)
        self.item_group = self.group[data.item_query]
        self.fixed: dict[str, Bools] = {}  # values that are known, in the shape of the parameter

    @abstractmethod
    def start(self, data: FoldedClicks) -> Params:
        """Where EM begins."""

    @abstractmethod
    def expected(
        self,
        data: FoldedClicks,
        x: Params,
        active: Bools | None = None,
        rng: np.random.Generator | None = None,
    ) -> tuple[Counts, Floats]:
        """The counts expected at x, or with ``rng`` drawn, of active groups; ln-likelihoods."""

    @abstractmethod
    def log_likelihood(self, data: Patterns, x: Params, active: Bools) -> Floats:
        """ln P(clicks) of each pattern of the active groups, (P,)."""

    def item_evidence(self, data: FoldedClicks, x: Params) -> dict[str, Pair]:
        """What clicks say of each item parameter, as counts."""
        counts, _ = self.expected(data, x)
        return {name: counts[name].evidence(x[name]) for name in self.items}

    def shared_evidence(self, data: FoldedClicks, x: Params, pseudo: Pseudo) -> dict[str, Pair]:
        """What clicks say of each shared parameter of a query, as counts, the items unknown."""
        shared = [name for name in x if name not in self.items]
        active = np.arange(self.G) < MOST_QUERIES
        counts, _ = self.expected(data, x, active)
        first = _gradient(counts, x)
        places = [(name, at) for name in shared for at in np.ndindex(x[name].shape[1:])]
        fixed = {f: self.fixed.get(f, np.zeros(x[f].shape, dtype=np.bool_)) for f in shared}
        free = np.concatenate([_rows(~fixed[f]) for f in shared], axis=1) & active[:, None]
        S, left = len(places), np.zeros((self.G, len(places), len(places)))
        cross = {name: np.zeros((len(x[name]), S)) for name in self.items}
        for j, (name, at) in enumerate(places):
            if free[:, j].any():
                moved = x[name].copy()
                moved[:, *at] = expit(logit(moved[:, *at]) + STEP)
                there = x | {name: np.where(moved > 0, moved, x[name])}
                change = _gradient(self.expected(data, there, active)[0], there)
                change = {f: (first[f] - change[f]) / STEP for f in change}
                left[:, :, j] = np.concatenate([_rows(change[f]) for f in shared], axis=1)
                for f in self.items:
                    cross[f][:, j] = change[f]
        bounds = np.searchsorted(self.item_group, np.arange(self.G + 1))
        for f in self.items:
            spread, missing = x[f] * (1.0 - x[f]), counts[f].missing
            own = (counts[f].trials + sum(pseudo[f])) * spread
            own = np.maximum(own - (0.0 if missing is None else missing), 1e-12)
            for g in np.flatnonzero(active):
                part = cross[f][bounds[g] : bounds[g + 1]]
                left[g] -= (part.T / own[bounds[g] : bounds[g + 1]]) @ part
        flat = np.concatenate([_rows(x[f]) for f in shared], axis=1)
        prior = np.concatenate([np.ravel(sum(pseudo[f])) for f in shared]) * flat * (1.0 - flat)
        variance = np.zeros((self.G, S))
        for g in np.flatnonzero(active):
            mine = np.flatnonzero(free[g])
            J = left[g][np.ix_(mine, mine)]
            variance[g, mine] = np.diag(inverse_of((J + J.T) / 2 + np.diag(prior[g, mine])))
        found, start = {}, 0
        for f in shared:
            end = start + _rows(x[f]).shape[1]
            found[f] = evidence(x[f], variance[:, start:end].reshape(x[f].shape), pseudo[f])
            start = end
        return found

    def settled(self, x: Params, alone: bool) -> Params:
        """The same users, on the scale on which they are reported; ``alone``: of one class."""
        return x

    def finished(self, data: FoldedClicks, fit: ModelEstimate) -> ModelEstimate:
        """The estimate of a class, with what the model makes of it."""
        return fit if self._finish is None else self._finish(data, fit)


def _gradient(counts: Counts, x: Params) -> Params:
    """Of the likelihood in the logits."""
    return {f: count.successes - count.trials * x[f] for f, count in counts.items()}


def _rows(value: Any) -> Any:
    return value.reshape(len(value), -1)


def inverse_of(J: Floats) -> Floats:
    """The inverse of a symmetric matrix; directions without information get a huge variance."""
    values, vectors = np.linalg.eigh(J)
    ridge = 1e-9 * max(float(np.abs(np.diag(J)).max(initial=0.0)), 1.0)
    found: Floats = (vectors / np.maximum(values, ridge)) @ vectors.T
    return found


class Ratios(Latent):
    """A model whose parameters are ratios of counts: nothing is latent but the class."""

    latent = False

    def __init__(
        self,
        data: FoldedClicks,
        options: Options,
        items: Callable[[FoldedClicks], dict[str, Pair]],
        shared: Callable[[FoldedClicks], dict[str, Pair]] | None = None,
        log_likelihood: Callable[[Patterns, Params], Floats] | None = None,
        finish: Finish | None = None,
    ) -> None:
        super().__init__(data, options, finish)
        self._items, self._shared, self._log_likelihood = items, shared, log_likelihood
        self._last: tuple[FoldedClicks | None, Counts] = None, {}
        self.items = tuple(self._items(data))

    def start(self, data: FoldedClicks) -> Params:
        """The ratios."""
        counts, _ = self.expected(data, {})
        return {name: (n + 1.0) / (d + 2.0) for name, (n, d, _) in counts.items()}

    def expected(
        self,
        data: FoldedClicks,
        x: Params,
        active: Bools | None = None,
        rng: np.random.Generator | None = None,
    ) -> tuple[Counts, Floats]:
        """The same whatever x is."""
        if data is not self._last[0]:
            counts = self._items(data) | (self._shared(data) if self._shared else {})
            self._last = data, {name: Count(*pair) for name, pair in counts.items()}
        return self._last[1], np.zeros(self.G)

    def log_likelihood(self, data: Patterns, x: Params, active: Bools) -> Floats:
        """ln P(clicks) of each pattern."""
        assert self._log_likelihood is not None
        return self._log_likelihood(data, x)

    def shared_evidence(self, data: FoldedClicks, x: Params, pseudo: Pseudo) -> dict[str, Pair]:
        """The counts."""
        return {f: c[:2] for f, c in self.expected(data, x)[0].items() if f not in self.items}


def independent(data: Patterns, p: Floats) -> Floats:
    """ln P(clicks) of each pattern, from P(click | clicks above) of all that is shown."""
    shown = data.shown
    p = np.clip(p, 1e-12, 1.0 - 1e-12)
    return sum_by(shown.pattern, np.where(shown.clicked, np.log(p), np.log1p(-p)), data.P)
