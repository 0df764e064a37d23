"""Classes of users fitted to the clicks of many queries, and how many of them there are.

``auto`` chooses one number for all queries, so that all are fitted together and share what they
have in common: a fifth of the SERPs is held out, classes from 1 to ``MOST`` are fitted to the rest,
and the smallest number is taken whose log-likelihood on all that was held out is within one
standard error (or ``EVIDENCE``) of the best. A class of a query that is not identified (hardly any
users, or a copy of another) is taken out, and the query has one fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from logeval.clicks.estimation.driver import Problem, Users
from logeval.clicks.estimation.em import EMResult, warning
from logeval.clicks.estimation.estimates import ModelEstimate, Options, ParameterEstimate
from logeval.clicks.estimation.patterns import FoldedClicks, Patterns
from logeval.clicks.estimation.posterior import with_uncertainty
from logeval.errors import LogevalError
from logeval.running import seeds
from logeval.running.arrays import Bools, Floats, sum_by

AUTO = "auto"
MOST = 6  # classes that ``auto`` tries
LARGEST = 20  # classes that can be asked for
HELD_OUT = 0.2
EVIDENCE = 2.0  # ln-likelihood of all that is held out; less says nothing, however sure
FEWEST_USERS = 3.0  # of a class; with fewer there is none
ALIKE = 0.02  # mean |ln P_a - ln P_b| of a SERP, below which two classes are one


@dataclass(frozen=True)
class ClassesEstimate:
    """Shares of the classes (Q, C), with 0 where a query has fewer, and the fit of each class."""

    number: int  # of classes that were asked for, or chosen
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


def fit_classes(
    kind: Any, data: FoldedClicks, options: Options, classes: int | str
) -> ClassesEstimate:
    """Users of a click model in so many classes, or as many as held-out SERPs ask for."""
    if isinstance(classes, int):
        C = classes
    else:
        C = chosen_number(kind, data.in_memory(), options)
    problem, users, result = _identified_users(kind, data, options, C)
    share, values = with_uncertainty(kind.name, problem, users)
    went: dict[str, Any] = {}
    if result is not None:
        went = {"iterations": result.iterations, "converged": int(result.converged.sum())}
        went |= {"groups": len(result.converged), "trace": result.trace}
    notes = [] if result is None else warning(kind.name, result, options.iterations)
    parts = []
    for c, mine in enumerate(problem.dealt(users)):
        strength = {f: a + b for f, (a, b) in users.shared[c].items()}
        estimate = ModelEstimate(values[c], users.items[c], strength, notes=notes, **went)
        parts.append(problem.base.finished(mine, estimate))
    if classes == 1:  # of clicks that may be on disk
        return ClassesEstimate(1, share, parts, [], parts[0].notes)
    notes = list(dict.fromkeys(note for part in parts for note in part.notes))
    if fewer := int(((share.value > 0).sum(axis=1) < C).sum()):
        notes.append(
            f"{kind.name}: {fewer} of {data.Q} queries have fewer than {C} classes: others would "
            "be empty, or alike"
        )
    who = behaviour_of(problem.patterns, problem.responsibilities(users)[0])
    return ClassesEstimate(C, share, parts, who, notes)


def chosen_number(kind: Any, data: Patterns, options: Options) -> int:
    """The number of classes of all queries."""

    def score(train: Patterns, C: int) -> Floats:
        problem = Problem(kind.beside(train, options), train, options, _every(data, C))
        return problem.responsibilities(problem.fitted()[0])[1]

    return smallest_number(score, data, options)


def smallest_number(
    score: Callable[[Patterns, int], Floats], data: Patterns, options: Options
) -> int:
    """That which ``score``, ln P(clicks) of each pattern after a fit to some, does not tell from
    the best one."""
    rng = seeds.generator(options.seed, "classes", "held out")
    held = rng.binomial(data.count.astype(np.int64), HELD_OUT).astype(float)
    train = data.weighted(data.count - held)
    scores = [score(train, C) for C in range(1, MOST + 1)]
    n, totals = max(float(held.sum()), 1.0), [float(held @ score) for score in scores]
    lost = scores[int(np.argmax(totals))] - np.stack(scores)  # (MOST, P)
    mean = lost @ held / n
    error = np.sqrt((lost - mean[:, None]) ** 2 @ held) / n
    return int(np.argmax(mean <= np.maximum(error, EVIDENCE / n))) + 1


def _every(data: FoldedClicks, C: int) -> Bools:
    return np.ones((data.Q, C), dtype=np.bool_)


# -- which of them are there -------------------------------------------------------------------


def _identified_users(
    kind: Any, data: FoldedClicks, options: Options, C: int
) -> tuple[Problem, Users, EMResult | None]:
    """Users in C classes; those of a query that are not identified are taken out."""
    data = data if C == 1 else data.in_memory()
    problem = Problem(kind.beside(data, options), data, options, _every(data, C))
    users, result = problem.fitted()
    while (there := _identified(problem, users)).sum() < problem.allowed.sum():
        problem = Problem(problem.base, data, options, there)
        share = np.where(there, users.share, 0.0)
        users.share = share / np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
        users, result = problem.maximise(users, options.iterations, options.tolerance)
        users = problem.settled(users)
        problem = Problem(problem.base, data, options, _first(there))
    return problem, users, result


def _first(there: Bools) -> Bools:
    """As many classes, the first ones: where ``ordered`` puts those that are there."""
    return np.arange(there.shape[1]) < there.sum(axis=1)[:, None]


def _identified(problem: Problem, users: Users) -> Bools:
    """The classes of each query that have users, and are no copies of an earlier one, (Q, C)."""
    allowed = problem.allowed.copy()
    if users.C == 1 or problem.options.scope == "pooled":
        return allowed
    data, every = problem.patterns, np.ones(problem.G, dtype=np.bool_)
    r, _ = problem.responsibilities(users)
    n = problem.users_of(r)
    allowed &= (n >= FEWEST_USERS) | (n >= n.max(axis=1, keepdims=True))
    each = [problem.base.log_likelihood(data, x, every) for x in users.x]
    for b in range(users.C):
        for a in range(b):
            apart = sum_by(data.query, data.count * np.abs(each[a] - each[b]), data.Q)
            alike = apart < ALIKE * data.serps
            allowed[:, b] &= ~(alike & allowed[:, a])
    seen = data.serps > 0
    allowed[~seen] = np.arange(users.C) == 0
    return allowed


# -- who the classes are ------------------------------------------------------------------------


def behaviour_of(data: Patterns, r: Floats) -> list[dict[str, float]]:
    """Of each class: users, shares without a click and with one, and clicks per user."""
    clicks = data.clicks.sum(axis=1)
    counted = np.stack([np.ones(data.P), clicks == 0, clicks == 1, clicks], axis=1)
    return [_named(row) for row in (data.count[:, None] * r).T @ counted]


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
