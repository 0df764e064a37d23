"""Uncertainty of chain models: the observed information of the parameters' logits.

Minus the second derivatives of ln P(c) (``chain_hessian``), summed over patterns, with the prior's
(a + b) x (1 - x) added, are the observed information J. It is an arrow: items of different
queries meet only in the shared parameters, so J is inverted query by query, the shared part
through its Schur complement. The variance of each logit is the diagonal of the inverse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from logeval.clicks.estimation.chain_hessian import add_information
from logeval.clicks.estimation.inverse import inverse_of
from logeval.clicks.estimation.patterns import FoldedClicks, Patterns
from logeval.clicks.models.chain import Formulas, Parameters, spread
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


def variances(
    data: FoldedClicks,
    group: Ints,
    formulas: Formulas,
    slopes: Slopes,
    item: dict[str, Floats],
    shared: dict[str, Floats],
    prior: dict[str, Floats],
) -> dict[str, Floats]:
    """The variance of the logit of every parameter, in its shape.

    ``item`` holds (I,) arrays, ``shared`` (G, K) or (G,) ones, ``prior`` the a + b of each.
    """
    information = {n: prior[n] * v * (1 - v) for n, v in (item | shared).items()}
    with np.errstate(divide="ignore"):  # what no pattern speaks of has its prior alone
        out = {n: 1.0 / x for n, x in information.items()}
    waiting: list[_Part] = []  # of the current group; groups come one after the other
    for part in _parts(data, group, formulas, slopes, item, shared, information):
        if waiting and group[part.q] != group[waiting[0].q]:
            _finish(data, group, waiting, list(item), list(shared), information, out)
            waiting = []
        waiting.append(part)
    _finish(data, group, waiting, list(item), list(shared), information, out)
    return out


def _finish(
    data: FoldedClicks,
    group: Ints,
    parts: list[_Part],
    item: list[str],
    shared: list[str],
    information: dict[str, Floats],
    out: dict[str, Floats],
) -> None:
    """Invert the shared part of one group, and add what it means for the items."""
    g = group[parts[0].q]
    own = [np.atleast_1d(information[name][g]) for name in shared]
    schur = np.diag(np.concatenate(own)) if shared else np.zeros((0, 0))
    for part in parts:
        schur += part.shared_information
    inverse = inverse_of(schur)
    for part in parts:
        more = np.einsum(
            "is,st,it->i", part.cross_solved, inverse, part.cross_solved, optimize=True
        )
        variances = np.split(part.item_variance + more, len(item))
        for name, variance in zip(item, variances, strict=True):
            out[name][data.offsets[part.q] : data.offsets[part.q + 1]] = variance
    start = 0
    for name, mine in zip(shared, own, strict=True):
        out[name][g] = np.diag(inverse)[start : start + len(mine)].reshape(out[name][g].shape)
        start += len(mine)


def _parts(
    data: FoldedClicks,
    group: Ints,
    formulas: Formulas,
    slopes: Slopes,
    item: dict[str, Floats],
    shared: dict[str, Floats],
    information: dict[str, Floats],
) -> Iterator[_Part]:
    """All queries; the parameters of about ``BLOCK`` patterns are gathered at a time."""
    S = sum(int(np.prod(v.shape[1:])) for v in shared.values())
    for block in data.blocks():
        by_query = np.argsort(block.query, kind="stable")
        queries, first = np.unique(block.query[by_query], return_index=True)
        bounds = np.append(first, len(by_query))
        i = 0
        while i < len(queries):
            end = max(i + 1, int(np.searchsorted(bounds, bounds[i] + BLOCK, side="right")) - 1)
            some = block.take(by_query[bounds[i] : bounds[end]])
            local = _local(some, group, formulas, slopes, item, shared)
            for one in range(i, end):
                rows = slice(bounds[one] - bounds[i], bounds[one + 1] - bounds[i])
                yield _block(data, int(queries[one]), local, rows, information, list(item), S)
            i = end


@dataclass(frozen=True)
class _Part:
    q: int
    item_variance: Floats  # diagonal of the inverse of the item block
    cross_solved: Floats  # item block^-1 @ cross block
    shared_information: Floats  # what the query adds to the Schur complement


@dataclass(frozen=True)
class _Local:
    """The parameters at each position of some patterns, as ``add_information`` wants them."""

    patterns: Patterns
    w: Floats
    stay: Floats
    skip: Floats
    w_place: Ints
    skip_place: Ints
    value: Floats
    slope: Floats
    place: Ints
    mixed: Floats

    def add_to(self, J: Floats, rows: slice) -> None:
        """Add the information of some of the patterns, which are those of one query."""
        data = self.patterns
        add_information(
            data.clicks[rows], data.length[rows], data.last_click[rows], data.count[rows],
            self.w[rows], self.stay[rows], self.skip[rows], self.w_place[rows],
            self.skip_place[rows], self.value[:, rows], self.slope[:, rows], self.place[:, rows],
            self.mixed, J,
        )  # fmt: skip


def _local(
    data: Patterns,
    group: Ints,
    formulas: Formulas,
    slopes: Slopes,
    item: dict[str, Floats],
    shared: dict[str, Floats],
) -> _Local:
    """Gather parameters, and their places in the information of their query.

    There item parameters come first, field by field, then shared ones.
    """
    P, K = data.items.shape
    g, shown = group[data.query], np.maximum(data.items, 0)
    first, n_items = data.offsets[data.query], np.diff(data.offsets)[data.query]
    x: dict[str, Floats] = {}
    place: dict[str, Ints] = {}
    for j, (name, value) in enumerate(item.items()):
        x[name] = _inside(value[shown])
        place[name] = shown - first[:, None] + (j * n_items)[:, None]
    start = len(item) * n_items
    for name, value in shared.items():
        x[name] = _inside(value[g] if value.ndim > 1 else value[g, None])
        place[name] = start[:, None] + np.arange(x[name].shape[1])
        start = start + x[name].shape[1]
    names = list(steep := slopes.stay(x))
    shape = (P, K)
    mixed = np.array(
        [[slopes.mixed.get((a, b), slopes.mixed.get((b, a), 0.0)) for b in names] for a in names]
    )
    none = np.full(P, -1, dtype=np.int64)
    return _Local(
        data,
        x["w"],
        formulas.stay(x),
        spread(formulas.skip(x), (P, 1))[:, 0].copy(),
        place["w"],
        none if slopes.skip is None else place[slopes.skip][:, 0].copy(),
        np.stack([spread(x[name], shape) for name in names]),
        np.stack([spread(steep[name], shape) for name in names]),
        np.stack([np.broadcast_to(place[name], shape) for name in names]),
        mixed,
    )


def _block(
    data: FoldedClicks,
    q: int,
    local: _Local,
    rows: slice,
    information: dict[str, Floats],
    item: list[str],
    S: int,
) -> _Part:
    """Assemble and eliminate the item parameters of one query."""
    span = slice(data.offsets[q], data.offsets[q + 1])
    own = np.concatenate([information[name][span] for name in item])
    N = len(own)
    J = np.zeros((N + S, N + S))
    local.add_to(J, rows)
    items, cross, shared = J[:N, :N], J[:N, N:], J[N:, N:]
    items[np.diag_indices(N)] += own
    if N > MAX_DENSE:
        inverse_diagonal = 1.0 / np.maximum(np.diag(items), 1e-12)
        solved = cross * inverse_diagonal[:, None]
        return _Part(q, inverse_diagonal, solved, shared - cross.T @ solved)
    inverse = inverse_of(items)
    solved = inverse @ cross
    return _Part(q, np.diag(inverse).copy(), solved, shared - cross.T @ solved)


def _inside(value: Floats) -> Floats:
    return np.clip(value, 1e-7, 1.0 - 1e-7)
