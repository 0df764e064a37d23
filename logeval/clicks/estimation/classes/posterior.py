"""The joint posterior of classes of users: one more thing is drawn, the class of every user.

The sampler is that of one class (``estimation.posterior``) with the fields of all classes side by
side: the users of a pattern are dealt to the classes by P(class | clicks), and then every class
completes its own clicks. Shares are drawn stick by stick: of the users that are in class c or a
later one, Beta(those in c + a, those in later ones + b) are in c, which together is a Dirichlet.
It starts at the estimate, where classes are in order; with clicks enough to tell them apart they
stay so.

What is kept are draws, from which the intervals of what lists earn are made: these hold. Shares and
parameters of a class have no intervals, because clicks hardly say where one class ends and the next
begins, and intervals around one way to divide them would hold half as often as they say
(``benchmarks/classes.py``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from logeval.clicks.estimation.classes.em import SHARES, ClassesEM, Users
from logeval.clicks.estimation.em import Params
from logeval.clicks.estimation.estimates import ParameterEstimate
from logeval.clicks.estimation.posterior import Belief, Fixed, beliefs, posterior
from logeval.clicks.estimation.priors import Pair
from logeval.running.arrays import Floats, Ints

FEWEST_DRAWS = 40  # of the chain, of which those asked for are kept


def to_sticks(share: Floats) -> Floats:
    """The share of class c among c and the later ones, (Q, C - 1)."""
    later = np.cumsum(share[:, ::-1], axis=1)[:, ::-1]
    return np.divide(share, later, out=np.full(share.shape, 0.5), where=later > 0)[:, :-1]


def to_shares(sticks: Floats) -> Floats:
    """Back, (..., C)."""
    one = np.ones((*sticks.shape[:-1], 1))
    before = np.concatenate([one, np.cumprod(1.0 - sticks, axis=-1)], axis=-1)
    found: Floats = before * np.concatenate([sticks, one], axis=-1)
    return found


def with_uncertainty(
    name: str, problem: ClassesEM, users: Users, steps: int = 2
) -> tuple[ParameterEstimate, list[dict[str, ParameterEstimate]]]:
    """The shares (Q, C), and the parameters of each class, with intervals and draws."""
    data, options, C = problem.data, problem.options, users.C
    fields = [(c, f) for c in range(C) for f in users.x[c]]
    n = data.count.astype(np.int64)
    allowed = problem.allowed

    def unpacked(x: Params) -> Users:
        share = np.where(allowed, to_shares(x["sticks"]), 0.0)
        each = [{f: x[f"{f}#{c}"] for cc, f in fields if cc == c} for c in range(C)]
        return Users(share / share.sum(axis=1, keepdims=True), each)

    def complete(x: Params, rng: np.random.Generator) -> dict[str, Pair]:
        now = unpacked(x)
        r, _ = problem.responsibilities(now)
        dealt = rng.multinomial(n, r / r.sum(axis=1, keepdims=True)).astype(float)
        counts: dict[str, Pair] = {}
        for c in range(C):
            mine = data.weighted(dealt[:, c])
            found = problem.base.counts(mine, now.x[c], rng)
            counts |= {f"{f}#{c}": pair for f, pair in found.items()}
        in_class = problem.users_of(dealt / np.maximum(data.count, 1.0)[:, None])
        later = np.cumsum(in_class[:, ::-1], axis=1)[:, ::-1]
        return counts | {"sticks": (in_class[:, :-1], later[:, :-1])}

    r, _ = problem.responsibilities(users)
    believed: dict[str, Belief] = {}
    trials: Params = {}
    for c in range(C):
        mine = problem.of_class(r[:, c])
        seen = {f: pair[1] for f, pair in problem.base.counts(mine, users.x[c]).items()}
        shared = {f: (pair, seen[f]) for f, pair in users.shared[c].items()}
        every = beliefs(data, options, users.items[c], shared)
        believed |= {f"{f}#{c}": belief for f, belief in every.items()}
        trials |= {f"{f}#{c}": seen[f] for f in users.x[c]}
    mean = np.where(allowed, np.maximum(users.share.mean(axis=0), 1e-3), 0.0)
    mean = SHARES * mean / mean.sum(axis=1, keepdims=True)
    later = np.cumsum(mean[:, ::-1], axis=1)[:, ::-1]
    believed["sticks"] = Fixed(
        np.maximum(mean[:, :-1], 1e-3), np.maximum((later - mean)[:, :-1], 1e-3)
    )
    in_class = problem.users_of(r)
    trials["sticks"] = np.cumsum(in_class[:, ::-1], axis=1)[:, ::-1][:, :-1]
    x = {f"{f}#{c}": users.x[c][f] for c, f in fields} | {"sticks": to_sticks(users.share)}
    asked = replace(options, draws=max(options.draws, FEWEST_DRAWS))
    found = posterior(name, asked, x, complete, believed, trials, None, data.P * data.K * C, steps)
    sticks = found["sticks"].draws
    assert sticks is not None
    shares = np.where(allowed, to_shares(sticks), 0.0)
    shares /= shares.sum(axis=2, keepdims=True)
    kept = np.linspace(0, len(sticks) - 1, options.draws).astype(np.int64)
    share = _kept(users.share, in_class, shares, kept)
    parts: list[dict[str, ParameterEstimate]] = []
    for c in range(C):
        of_class = {f: found[f"{f}#{c}"] for f in users.x[c]}
        parts.append(
            {f: _kept(e.value, e.observations, e.draws, kept) for f, e in of_class.items()}
        )
    return share, parts


def _kept(
    value: Floats, observations: Floats, draws: Floats | None, kept: Ints
) -> ParameterEstimate:
    """An estimate without an interval, and some of its draws."""
    assert draws is not None
    unknown = np.full_like(value, np.nan)
    return ParameterEstimate(value, unknown, unknown, observations, draws=draws[kept])
