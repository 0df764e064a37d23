"""The choice model: results compete for the clicks that a search has appetite for.

What the odds of one more click are, and on which result it is: ``users/choice.py``; how it is
fitted, in any number of classes at once: ``estimation/choice.py``. Attraction is that beside the
best result of the query (1). A satisfaction of 0.5 changes nothing; above it, a click on the result
ends more searches. The best list for any click is found by sorting, that for clicks by climbing
from there, which proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from logeval.clicks.estimation.choice import (
    NARROW,
    RESPONSE,
    SCALES,
    ChoiceFit,
    Fields,
    estimated,
    parameters,
)
from logeval.clicks.estimation.estimates import ModelEstimate, Options
from logeval.clicks.estimation.patterns import FoldedClicks, Patterns
from logeval.clicks.estimation.priors import Prior
from logeval.clicks.models.model import ClickModel, Parameter
from logeval.clicks.users.choice import Choice as Users
from logeval.clicks.users.mixture import Mixture, searched
from logeval.clicks.users.optimum import Optimum
from logeval.running.arrays import Floats, Ints, sum_by

if TYPE_CHECKING:
    from logeval.clicks.estimation.classes import ClassesEstimate
    from logeval.clicks.fitted import FittedModel

Z = 1.96
SHARED = "Choice: queries share what users do at positions, but for shifts of their own"


@dataclass(frozen=True)
class Choice(ClickModel):
    """Choice model of one query."""

    w: Floats  # (L,) attraction
    s: Floats  # (L,) satisfaction
    b: Floats  # (K, K + 1) attraction of a position given the last click, 0 for none
    more: Floats  # (K,) going on after so many clicks, from 0
    depth: Floats  # (K,) going on after a last click there, from 0
    response: float  # to what a list offers

    name = "Choice"
    PARAMETERS = (
        Parameter("w", "attraction", "item"),
        Parameter("s", "satisfaction", "item"),
        Parameter("b", "place", "transition"),
        Parameter("more", "appetite", "position"),
        Parameter("depth", "depth", "position"),
        Parameter("response", "response", "scalar"),
    )
    methods = ("map",)
    OPTIONS: ClassVar[dict[str, tuple[str, ...]]] = {"response": ("value", "clicks")}

    @property
    def users(self) -> Users:
        """Users who choose."""
        return Users(self.w, self.s, self.b, self.more, self.depth, self.response)

    @classmethod
    def fit(cls, data: FoldedClicks, options: Options) -> ModelEstimate:
        """The mode of the posterior, by L-BFGS."""
        found = cls.fit_classes(data, options, 1)
        return replace(found.parts[0], notes=found.notes)

    @classmethod
    def fit_classes(
        cls, data: FoldedClicks, options: Options, classes: int | str
    ) -> ClassesEstimate:
        """All classes at once; what they have in common, they share."""
        from logeval.clicks.estimation import classes as general

        data = data.in_memory()

        def scores(train: Patterns, C: int) -> Floats:
            return _fitted(train, C, options).log_likelihood(data)

        C = classes
        if not isinstance(C, int):
            C = general.smallest_number(scores, data, options)
        fit = _fitted(data, C, options, cls.told(data, C, options))
        r = fit.responsibilities()
        order = np.argsort([x["clicks"] for x in general.behaviour_of(data, r)], kind="stable")
        G, groups = options.groups(data)
        found = parameters(fit, fit.x, G)
        draws = fit.draws(options.draws) if options.intervals else []
        drawn = [parameters(fit, x, G) for x in draws]
        parts = [
            _part(fit, z, found, drawn, data.weighted(data.count * r[:, z]), groups)
            for z in order.tolist()
        ]
        searches = sum_by(data.query, data.count, data.Q)[:, None]
        share = estimated(found["share"][:, order], [x["share"][:, order] for x in drawn], searches)
        behaviour = general.behaviour_of(data, r[:, order])
        alone = options.scope == "per-query"
        return general.ClassesEstimate(C, share, parts, behaviour, [SHARED] if alone else [])

    @classmethod
    def told(cls, data: Patterns, C: int, options: Options) -> tuple[float, float] | None:
        """The response by the value check: mean and standard error."""
        if options.of_model(cls)["response"] == "clicks" or options.smoothing != "empirical-bayes":
            return None
        from logeval.clicks.fitting import fit_one
        from logeval.clicks.quality.value import cross_fitted, of_list

        asked = replace(options, chosen={"response": "clicks"}, classes=C, draws=0, intervals=False)
        fits: list[FittedModel] = []

        def fit(part: Patterns) -> FittedModel:
            fits.append(fit_one(cls.name, part, asked))
            return fits[-1]

        slope = of_list(cross_fitted(fit, data, seed=options.seed))
        found = [float(one.classes[0].estimates["response"].value.mean()) for one in fits]
        prior, spread = RESPONSE, SCALES["response"]
        if slope is None or not np.isfinite(slope.high - slope.low):
            return prior, spread
        mean = float(np.mean(found))
        error = max(mean * (slope.high - slope.low) / (2.0 * Z), NARROW)
        weight = spread**2 / (spread**2 + error**2)
        return weight * mean * slope.slope + (1 - weight) * prior, float(np.sqrt(weight)) * error

    def best(self, K: int, reward: str) -> Optimum:
        """Sorted, where that is best; otherwise climbing from there."""
        users, A = self.users, np.empty(K, dtype=np.int64)
        A[np.argsort(-self.b[:K, 0], kind="stable")] = np.argsort(-self.w, kind="stable")[:K]
        if reward == "clicks":
            one = Mixture(np.ones(1), (users,))
            A, value = searched(one, K, reward, [A], np.arange(self.L), kicks=0)
            return Optimum(A, value, False, np.nan)
        return Optimum(A, float(users.expected_reward(A[None], reward)[0]), True, 0.0)


def _fitted(
    data: Patterns, C: int, options: Options, told: tuple[float, float] | None = None
) -> ChoiceFit:
    """The fit of C classes."""
    learn = options.smoothing == "empirical-bayes"
    fit = ChoiceFit(data, C, options.scope == "pooled", learn, options.seed, told)
    fit.fit()
    return fit


def _part(
    fit: ChoiceFit, z: int, found: Fields, drawn: list[Fields], data: Patterns, groups: Ints
) -> ModelEstimate:
    """The estimate of class z, whose searches are those of ``data``."""
    clicks, at, G = data.clicks.sum(axis=1), groups[data.query], int(groups.max()) + 1
    by_number = [sum_by(at, data.count * (clicks >= j), G) for j in range(data.K)]
    came = np.stack(by_number, axis=1)
    shown = data.shown
    seen = sum_by(at[shown.pattern] * data.K + shown.position, shown.count, G * data.K)
    seen = seen.reshape(G, -1)
    observations = {
        "w": data.impressions, "s": data.item_clicks, "b": seen[:, :, None], "more": came,
        "depth": seen, "response": came[:, 0],
    }  # fmt: skip
    estimates = {
        f: estimated(found[f][z], [one[f][z] for one in drawn], n) for f, n in observations.items()
    }
    counts = {f: scale**-2 for f, scale in fit.scales.items()}  # what a prior is worth, about
    nothing, half, unseen = np.zeros(data.I), np.full(data.Q, 0.5), found["unseen"][z]
    each = np.ones(data.Q)
    priors = {
        "w": Prior(nothing, nothing, unseen, float(unseen.mean()), counts["item"] * each),
        "s": Prior(nothing, nothing, half, 0.5, counts["satisfied"] * each),
    }
    shared = {
        "b": np.full((data.K, data.K + 1), counts["place"]),
        "more": np.zeros(data.K),
        "depth": np.full(data.K, counts["depth_query"]),
        "response": np.array(counts["response"]),
    }
    return ModelEstimate(estimates, priors, shared, fit.steps, G * fit.converged, G)
