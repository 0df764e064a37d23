"""Classes of users fitted to the clicks of many queries, and how many of them each query has.

``auto`` chooses the number query by query: a fifth of its SERPs is held out, classes from 1 to
``MOST`` are fitted to the rest, and the smallest number is taken whose log-likelihood on what was
held out is within one standard error of the best. Queries with as many classes are then fitted
together, to all SERPs. A class that is not identified (hardly any users, or a copy of another) is
taken out, and the query has one fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from logeval.clicks.estimation.classes.em import ClassesEM, Users, maximised
from logeval.clicks.estimation.classes.posterior import with_uncertainty
from logeval.clicks.estimation.em import EMResult
from logeval.clicks.estimation.estimates import ModelEstimate, Options, ParameterEstimate
from logeval.clicks.estimation.patterns import Patterns
from logeval.errors import LogevalError
from logeval.running import seeds
from logeval.running.arrays import Bools, Floats, Ints, sum_by

AUTO = "auto"
MOST = 6  # classes that ``auto`` tries
LARGEST = 20  # classes that can be asked for
HELD_OUT = 0.2
FEWEST_USERS = 3.0  # of a class; with fewer there is none
ALIKE = 0.02  # mean |ln P_a - ln P_b| of a SERP, below which two classes are one


@dataclass(frozen=True)
class ClassesEstimate:
    """Shares of the classes (Q, C), with 0 where a query has fewer, and the fit of each class."""

    share: ParameterEstimate
    parts: list[ModelEstimate]
    behaviour: list[dict[str, float]]  # of each class: its users, and how they click
    notes: list[str] = field(default_factory=list)


def number_of(text: str | int) -> int | str:
    """The number of classes, or ``auto``."""
    if str(text).lower() == AUTO:
        return AUTO
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= LARGEST:
        raise LogevalError(f"classes={text}: write a number from 1 to {LARGEST}, or auto")
    return number


def fit_classes(kind: Any, data: Patterns, options: Options, classes: int | str) -> ClassesEstimate:
    """Users of a click model in so many classes, or as many as held-out SERPs ask for."""
    number = (
        np.full(data.Q, classes)
        if isinstance(classes, int)
        else chosen_numbers(kind, data, options)
    )
    fitted = [
        _fit_queries(kind, data, options, int(C), number == C) for C in np.unique(number).tolist()
    ]
    most = max(users.C for _, users, _ in fitted)
    merged = _merged(kind, data, options, fitted, most)
    given = np.array([int((row > 0).sum()) for row in merged.share.value])
    fewer = int((given < number).sum()) if isinstance(classes, int) else 0
    if fewer:
        merged.notes.append(
            f"{kind.name}: {fewer} of {data.Q} queries have fewer than {classes} classes: others "
            "would be empty, or alike"
        )
    return merged


# -- how many ----------------------------------------------------------------------------------


def chosen_numbers(kind: Any, data: Patterns, options: Options) -> Ints:
    """The number of classes of each query; of all queries alike if they are pooled, (Q,)."""
    rng = seeds.generator(options.seed, "classes", "held out")
    held = rng.binomial(data.count.astype(np.int64), HELD_OUT).astype(float)
    train = data.weighted(data.count - held)
    scores = []  # ln P(clicks) of each pattern
    for C in range(1, MOST + 1):
        problem = ClassesEM(kind.beside(train, options), train, options, _every(data, C))
        users, _ = maximised(problem, C)
        scores.append(problem.responsibilities(users)[1])
    unit = np.zeros(data.Q, dtype=np.int64) if options.scope == "pooled" else np.arange(data.Q)
    of = unit[data.query]
    G = int(unit.max()) + 1
    n = np.maximum(sum_by(of, held, G), 1e-9)
    means = np.stack([sum_by(of, held * score, G) / n for score in scores])
    best = means.argmax(axis=0)
    number = best + 1
    at_best = np.stack(scores)[best[of], np.arange(data.P)]
    for C in range(MOST - 1, 0, -1):
        lost = at_best - scores[C - 1]
        mean = sum_by(of, held * lost, G) / n
        error = np.sqrt(sum_by(of, held * (lost - mean[of]) ** 2, G) / n / n)
        number = np.where((C <= best) & (mean <= error), C, number)
    return number[unit]


def _every(data: Patterns, C: int) -> Bools:
    return np.ones((data.Q, C), dtype=np.bool_)


# -- fitting queries with as many classes ------------------------------------------------------

Fit = tuple[ClassesEM, Users, EMResult]


def _fit_queries(kind: Any, data: Patterns, options: Options, C: int, mine: Bools) -> Fit:
    """Some queries, with C classes; those that are not identified are taken out."""
    if not mine.all():
        data = data.take(mine[data.query])
    problem = ClassesEM(kind.beside(data, options), data, options, _every(data, C))
    users, result = maximised(problem, C)
    while (there := _identified(problem, users)).sum() < problem.allowed.sum():
        problem = ClassesEM(problem.base, data, options, there)
        share = np.where(there, users.share, 0.0)
        users.share = share / np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
        users, result = problem.maximise(users, options.iterations, options.tolerance)
        users = problem.settled(users)
        problem = ClassesEM(problem.base, data, options, _first(there))
    return problem, users, result


def _first(there: Bools) -> Bools:
    """As many classes, the first ones: where ``ordered`` puts those that are there."""
    return np.arange(there.shape[1]) < there.sum(axis=1)[:, None]


def _identified(problem: ClassesEM, users: Users) -> Bools:
    """The classes of each query that have users, and are no copies of an earlier one, (Q, C)."""
    allowed, data = problem.allowed.copy(), problem.data
    if users.C == 1 or problem.options.scope == "pooled":
        return allowed
    r, _ = problem.responsibilities(users)
    n = problem.users_of(r)
    allowed &= (n >= FEWEST_USERS) | (n >= n.max(axis=1, keepdims=True))
    each = [problem.base.log_likelihood(data, x) for x in users.x]
    for b in range(users.C):
        for a in range(b):
            apart = sum_by(data.query, data.count * np.abs(each[a] - each[b]), data.Q)
            alike = apart < ALIKE * data.serps
            allowed[:, b] &= ~(alike & allowed[:, a])
    seen = data.serps > 0
    allowed[~seen] = np.arange(users.C) == 0
    return allowed


# -- together ------------------------------------------------------------------------------------


def _merged(
    kind: Any, data: Patterns, options: Options, fitted: Sequence[Fit], most: int
) -> ClassesEstimate:
    """All queries in one, with their uncertainty."""
    share: ParameterEstimate | None = None
    parts: list[ModelEstimate] = []
    clicks = np.zeros((most, 4))  # users, without a click, with one, clicks
    for problem, users, result in fitted:
        shares, values = with_uncertainty(kind.name, problem, users)
        r, _ = problem.responsibilities(users)
        clicks[: users.C] += _behaviour(problem.data, r)
        own = []
        for c in range(most):
            here = min(c, users.C - 1)
            strength = {f: a + b for f, (a, b) in users.shared[here].items()}
            estimate = ModelEstimate(
                values[here], users.items[here], strength, result.iterations,
                int(result.converged.sum()), len(result.converged), result.trace,
            )  # fmt: skip
            mine = problem.of_class(r[:, here])
            own.append(problem.base.finished(mine, estimate))
        wide = shares.map(lambda x: np.pad(x, ((0, 0), (0, most - x.shape[1]))))
        if share is None:
            share, parts = wide, own
            continue
        on = problem.data.serps > 0
        share = _joined(share, wide, on)
        parts = [_joined_fit(a, b, on, data) for a, b in zip(parts, own, strict=True)]
    assert share is not None
    notes = list(dict.fromkeys(note for part in parts for note in part.notes))
    return ClassesEstimate(share, parts, [_named(row) for row in clicks], notes)


def _joined(old: ParameterEstimate, new: ParameterEstimate, on: Bools) -> ParameterEstimate:
    """The new numbers where ``on``, which is along the first axis."""

    def pick(a: Floats | None, b: Floats | None) -> Floats | None:
        if a is None or b is None:
            return a
        return np.where(on.reshape(-1, *[1] * (a.ndim - 1)), b, a)

    draws = old.draws
    if draws is not None and new.draws is not None:
        draws = np.where(on.reshape(1, -1, *[1] * (draws.ndim - 2)), new.draws, draws)
    names = ("value", "low", "high", "observations")
    numbers: dict[str, Any] = {n: pick(getattr(old, n), getattr(new, n)) for n in names}
    return replace(old, **numbers, raw=pick(old.raw, new.raw), draws=draws)


def _joined_fit(old: ModelEstimate, new: ModelEstimate, on: Bools, data: Patterns) -> ModelEstimate:
    """Two fits of a class, to different queries."""
    estimates = {}
    for f, x in old.estimates.items():
        at = on[data.item_query] if f in old.priors else on
        estimates[f] = _joined(x, new.estimates[f], at)
    priors = {}
    for f, prior in old.priors.items():
        other = new.priors[f]
        priors[f] = replace(
            prior,
            a=np.where(on[data.item_query], other.a, prior.a),
            b=np.where(on[data.item_query], other.b, prior.b),
            mean=np.where(on, other.mean, prior.mean),
            strength=np.where(on, other.strength, prior.strength),
        )
    notes = [*old.notes, *new.notes]
    return replace(
        old,
        estimates=estimates,
        priors=priors,
        iterations=max(old.iterations, new.iterations),
        converged=old.converged + new.converged,
        groups=old.groups + new.groups,
        notes=notes,
    )


# -- who the classes are ------------------------------------------------------------------------


def _behaviour(data: Patterns, r: Floats) -> Floats:
    """Of each class: users, those without a click, those with one, and clicks, (C, 4)."""
    clicks = data.clicks.sum(axis=1)
    counted = np.stack([np.ones(data.P), clicks == 0, clicks == 1, clicks], axis=1)
    found: Floats = (data.count[:, None] * r).T @ counted
    return found


def _named(row: Floats) -> dict[str, float]:
    users, none, one, clicks = (float(x) for x in row)
    per = max(users, 1e-300)
    return {"users": users, "no_click": none / per, "one_click": one / per, "clicks": clicks / per}


def in_words(behaviour: Sequence[dict[str, float]]) -> str:
    """``31% leave without a click; 45% take one result; 24% open 3.1 results on average``."""
    total = max(sum(row["users"] for row in behaviour), 1e-300)
    return "; ".join(
        f"{row['users'] / total:.0%} {_does(row)}" for row in behaviour if row["users"] > 0
    )


def _does(row: dict[str, float]) -> str:
    if row["no_click"] >= 0.75:
        return "leave without a click"
    if row["one_click"] >= 0.6:
        return "take one result"
    if row["no_click"] >= 0.4 and row["clicks"] < 1.0:
        return "take one result or none"
    return f"open {row['clicks']:.1f} results on average"
