"""What clicks say of the parameters that the items of a query share, in chain models.

Minus the second derivatives of ln P(c) (``hessian``) in the logits, summed over the patterns of a
query, with the prior's (a + b) x (1 - x) added, are the observed information J. The items are
eliminated (what is left is the Schur complement), and the diagonal of its inverse is the variance
of the logit of each shared parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from logeval.clicks.estimation.chain.hessian import Places, add_information
from logeval.clicks.estimation.chain.inverse import inverse_of
from logeval.clicks.estimation.em import Params
from logeval.clicks.estimation.patterns import FoldedClicks, Patterns
from logeval.clicks.models.users.chain import Formulas, Parameters, spread
from logeval.running.arrays import Floats, Ints

BLOCK = 20_000  # patterns whose parameters are gathered at a time
MAX_DENSE = 2500  # beyond this many item parameters of a query, their correlations are ignored


@dataclass(frozen=True)
class Slopes:
    """How going on depends on the parameters, in addition to ``Formulas``.

    ``stay`` gives d stay / dx for each parameter x that going on after a click depends on; it is
    linear in each of them. ``mixed`` holds the second derivatives of pairs, ``skip`` the name
    of the parameter that is the probability to go on after a skip.
    """

    stay: Callable[[Parameters], dict[str, Floats | float]]
    mixed: Mapping[tuple[str, str], float] = field(default_factory=dict)
    skip: str | None = None


def shared_variances(
    data: FoldedClicks,
    formulas: Formulas,
    slopes: Slopes,
    items: tuple[str, ...],
    x: Params,
    strength: Mapping[str, Floats],
) -> Params:
    """The variance of the logit of every shared parameter, (Q, K) or (Q,), in its shape.

    ``x`` holds the parameters of ``items``, (I,), and the shared ones of each query; ``strength``
    is the a + b of each.
    """
    information = {name: strength[name] * v * (1 - v) for name, v in x.items()}
    shared = [name for name in x if name not in items]
    with np.errstate(divide="ignore"):  # what no pattern speaks of has its prior alone
        out = {name: 1.0 / information[name] for name in shared}
    for q, J in informations(data, formulas, slopes, items, x):
        span = slice(data.offsets[q], data.offsets[q + 1])
        own = np.concatenate([information[name][span] for name in items])
        mine = [np.atleast_1d(information[name][q]) for name in shared]
        schur = np.diag(np.concatenate(mine)) + _without_items(J, own)
        variance, start = np.diag(inverse_of(schur)), 0
        for name, part in zip(shared, mine, strict=True):
            out[name][q] = variance[start : start + len(part)].reshape(out[name][q].shape)
            start += len(part)
    return out


def _without_items(J: Floats, prior: Floats) -> Floats:
    """What is left of J for the shared parameters when the items, which are first, are unknown."""
    N = len(prior)
    own, cross, shared = J[:N, :N], J[:N, N:], J[N:, N:]
    own[np.diag_indices(N)] += prior
    if N > MAX_DENSE:
        solved = cross * (1.0 / np.maximum(np.diag(own), 1e-12))[:, None]
    else:
        solved = inverse_of(own) @ cross
    return shared - cross.T @ solved


def informations(
    data: FoldedClicks, formulas: Formulas, slopes: Slopes, items: tuple[str, ...], x: Params
) -> Iterator[tuple[int, Floats]]:
    """Each query and its information without the prior: of its items, field by field, then shared.

    The parameters of about ``BLOCK`` patterns are gathered at a time.
    """
    S = sum(int(np.prod(v.shape[1:])) for name, v in x.items() if name not in items)
    for block in data.blocks():
        by_query = np.argsort(block.query, kind="stable")
        queries, first = np.unique(block.query[by_query], return_index=True)
        bounds = np.append(first, len(by_query))
        i = 0
        while i < len(queries):
            end = max(i + 1, int(np.searchsorted(bounds, bounds[i] + BLOCK, side="right")) - 1)
            some = block.take(by_query[bounds[i] : bounds[end]])
            places = _gathered(some, formulas, slopes, items, x)
            for one in range(i, end):
                q = int(queries[one])
                N = len(items) * int(data.offsets[q + 1] - data.offsets[q]) + S
                J = np.zeros((N, N))
                add_information(places, bounds[one] - bounds[i], bounds[one + 1] - bounds[i], J)
                yield q, J
            i = end


def _gathered(
    data: Patterns, formulas: Formulas, slopes: Slopes, items: tuple[str, ...], x: Params
) -> Places:
    """The parameters at each position of some patterns, and their places in the information."""
    shape = P, _ = data.items.shape
    shown = np.maximum(data.items, 0)
    first, n_items = data.offsets[data.query], np.diff(data.offsets)[data.query]
    here: dict[str, Floats] = {}
    place: dict[str, Ints] = {}
    for j, name in enumerate(items):
        here[name] = _inside(x[name][shown])
        place[name] = shown - first[:, None] + (j * n_items)[:, None]
    start = len(items) * n_items
    for name in (name for name in x if name not in items):
        value = x[name][data.query]
        here[name] = _inside(value if value.ndim > 1 else value[:, None])
        place[name] = start[:, None] + np.arange(here[name].shape[1])
        start = start + here[name].shape[1]
    names = list(steep := slopes.stay(here))
    both_ways = {(b, a): x for (a, b), x in slopes.mixed.items()} | dict(slopes.mixed)
    none = np.full(P, -1, dtype=np.int64)
    return Places(
        data.clicks,
        data.length,
        data.last_click,
        data.count,
        here["w"],
        formulas.stay(here),
        spread(formulas.skip(here), (P, 1))[:, 0].copy(),
        place["w"],
        none if slopes.skip is None else place[slopes.skip][:, 0].copy(),
        np.stack([spread(here[name], shape) for name in names]),
        np.stack([spread(steep[name], shape) for name in names]),
        np.stack([np.broadcast_to(place[name], shape) for name in names]),
        np.array([[both_ways.get((a, b), 0.0) for b in names] for a in names]),
    )


def _inside(value: Floats) -> Floats:
    return np.clip(value, 1e-7, 1.0 - 1e-7)
