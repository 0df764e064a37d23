"""Uncertainty of chain models: the observed information of the parameters' logits.

For each pattern the gradient of ln P(c) in the w, stay and skip of its own positions is exact
(``gradient_rows``); the model's ``pull`` turns it into the gradient in its parameters; central
differences of that give the pattern's Hessian. Summed over patterns, with the prior's
(a + b) x (1 - x) added, this is the observed information J. It is an arrow: items of different
queries meet only in the shared parameters, so J is inverted query by query, the shared part
through its Schur complement. The variance of each logit is the diagonal of the inverse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.special import expit, logit

from logeval.arrays import Bools, Floats, Ints, sum_by
from logeval.clicks.estimation.inverse import inverse_of
from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.models.chain import Formulas, Parameters, spread

STEP = 1e-4
BLOCK = 20_000  # patterns whose Hessians are held at a time
UNUSED = np.iinfo(np.int64).min
MAX_DENSE = 2500  # beyond this many item parameters of a query, their correlations are ignored


@njit(cache=True, nogil=True)
def gradient_rows(
    w: Floats,
    stay: Floats,
    skip: Floats,
    clicks: Bools,
    length: Ints,
    last_click: Ints,
    dw: Floats,
    dstay: Floats,
    dskip: Floats,
) -> None:
    """d ln P(c) / d w_k, d stay_k and d skip of each pattern; see chain_inference for B."""
    K = w.shape[1]
    B = np.empty(K + 1)
    for p in range(w.shape[0]):
        n, last, go = length[p], last_click[p], skip[p]
        for k in range(K):
            dw[p, k] = 0.0
            dstay[p, k] = 0.0
        dskip[p] = 0.0
        for k in range(last + 1):
            if clicks[p, k]:
                dw[p, k] = 1.0 / w[p, k]
                if k < last:
                    dstay[p, k] = 1.0 / stay[p, k]
            else:
                dw[p, k] = -1.0 / (1.0 - w[p, k])
                dskip[p] += 1.0 / go
        B[n] = 1.0
        for k in range(n - 1, last, -1):
            left = 0.0 if k == n - 1 else (1.0 - go) * (1.0 - B[k + 1])
            B[k] = (1.0 - w[p, k]) * (B[k + 1] + left)
        if last == n - 1:
            continue
        slope = 1.0 / B[0] if last < 0 else 1.0  # d ln P / d B_{last+1}
        if last >= 0:
            s = stay[p, last]
            none = 1.0 - s + s * B[last + 1]
            dstay[p, last] = (B[last + 1] - 1.0) / none
            slope = s / none
        for k in range(last + 1, n):
            if k == n - 1:
                dw[p, k] = -slope
            else:
                dw[p, k] = -slope * (1.0 - go + go * B[k + 1])
                dskip[p] += slope * (1.0 - w[p, k]) * (B[k + 1] - 1.0)
                slope *= (1.0 - w[p, k]) * go


# The gradient in each parameter from the parameters and the gradient in w, stay (both (P, K)) and
# skip (P,): the chain rule through the model's formulas. Parameters of items and positions are
# (P, K), scalars (P, 1).
Pull = Callable[[Parameters, Floats, Floats, Floats], dict[str, Floats]]


def variances(
    data: Patterns,
    group: Ints,
    formulas: Formulas,
    pull: Pull,
    item: dict[str, Floats],
    shared: dict[str, Floats],
    prior: dict[str, Floats],
) -> dict[str, Floats]:
    """The variance of the logit of every parameter, in its shape.

    ``item`` holds (I,) arrays, ``shared`` (G, K) or (G,) ones, ``prior`` the a + b of each.
    """
    out = {name: np.full(v.shape, np.inf) for name, v in (item | shared).items()}
    information = {n: prior[n] * v * (1 - v) for n, v in (item | shared).items()}
    waiting: list[_Part] = []  # of the current group; groups come one after the other
    for part in _parts(data, group, formulas, pull, item, shared, information):
        if waiting and group[part.q] != group[waiting[0].q]:
            _finish(data, group, waiting, list(item), list(shared), information, out)
            waiting = []
        waiting.append(part)
    _finish(data, group, waiting, list(item), list(shared), information, out)
    return out


def _finish(
    data: Patterns,
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
    data: Patterns,
    group: Ints,
    formulas: Formulas,
    pull: Pull,
    item: dict[str, Floats],
    shared: dict[str, Floats],
    information: dict[str, Floats],
) -> Iterator[_Part]:
    """The queries in their order, the Hessians of a block of patterns at a time."""
    by_query = np.argsort(data.query, kind="stable")
    bounds = np.searchsorted(data.query[by_query], np.arange(data.Q + 1))
    S = sum(int(np.prod(v.shape[1:])) for v in shared.values())
    q = 0
    while q < data.Q:
        end = max(q + 1, int(np.searchsorted(bounds, bounds[q] + BLOCK, side="right")) - 1)
        block = data.take(by_query[bounds[q] : bounds[end]])
        columns, at, index = _columns(block, group, item, shared)
        hessian = _hessians(block, formulas, pull, columns, at, list(item) + list(shared))
        for one in range(q, end):
            rows = slice(bounds[one] - bounds[q], bounds[one + 1] - bounds[q])
            yield _block(data, one, index[rows], hessian[rows], information, list(item), S)
        q = end


@dataclass(frozen=True)
class _Part:
    q: int
    item_variance: Floats  # diagonal of the inverse of the item block
    cross_solved: Floats  # item block^-1 @ cross block
    shared_information: Floats  # what the query adds to the Schur complement


def _columns(
    data: Patterns, group: Ints, item: dict[str, Floats], shared: dict[str, Floats]
) -> tuple[list[Floats], list[tuple[str, int]], Ints]:
    """The logits at each pattern, one column per local parameter, and where each belongs.

    ``index[p, c]`` counts item parameters of the pattern's query from 0 (field by field), and
    shared ones as -1 - their place; it is ``UNUSED`` beyond the end of a list.
    """
    g = group[data.query]
    local_item = np.where(data.items >= 0, data.items - data.offsets[data.query][:, None], UNUSED)
    n_items = np.diff(data.offsets)[data.query]
    columns, at, index = [], [], []
    for j, (name, value) in enumerate(item.items()):
        for k in range(data.K):
            shown = data.items[:, k] >= 0
            columns.append(logit(_inside(value[np.where(shown, data.items[:, k], 0)])))
            at.append((name, k))
            index.append(np.where(shown, local_item[:, k] + j * n_items, UNUSED))
    start = 0
    for name, value in shared.items():
        flat = value.reshape(len(value), -1)
        for k in range(flat.shape[1]):
            columns.append(logit(_inside(flat[g, k])))
            at.append((name, k if value.ndim > 1 else -1))
            used = data.length > k if value.ndim > 1 else np.ones(len(g), dtype=np.bool_)
            index.append(np.where(used, -1 - start - k, UNUSED))
        start += flat.shape[1]
    return columns, at, np.stack(index, axis=1)


def _hessians(
    data: Patterns,
    formulas: Formulas,
    pull: Pull,
    columns: list[Floats],
    at: list[tuple[str, int]],
    names: list[str],
) -> Floats:
    """Minus the Hessian of each pattern's ln P(c), times its count, (P, C, C)."""
    C = len(columns)
    hessian = np.empty((len(data.query), C, C))

    def gradient(shifted: list[Floats]) -> Floats:
        params: dict[str, Floats] = {}
        for name in names:
            mine = [expit(shifted[c]) for c in range(C) if at[c][0] == name]
            scalar = at[[n for n, _ in at].index(name)][1] < 0
            params[name] = mine[0] if scalar else np.stack(mine, axis=1)
        wide = {n: x[:, None] if x.ndim == 1 else x for n, x in params.items()}
        w, stay = wide["w"], formulas.stay(wide)
        skip = spread(formulas.skip(wide), (len(w), 1))[:, 0]
        dw, dstay, dskip = np.empty_like(w), np.empty_like(w), np.empty(len(w))
        gradient_rows(w, stay, skip, data.clicks, data.length, data.last_click, dw, dstay, dskip)
        pulled = pull(wide, dw, dstay, dskip)
        parts = [pulled[n] * params[n] * (1 - params[n]) for n in names]
        return np.concatenate([x[:, None] if x.ndim == 1 else x for x in parts], axis=1)

    for c in range(C):
        up, down = list(columns), list(columns)
        up[c], down[c] = columns[c] + STEP, columns[c] - STEP
        hessian[:, :, c] = (gradient(down) - gradient(up)) / (2 * STEP)
    return hessian * data.count[:, None, None]


def _block(
    data: Patterns,
    q: int,
    index: Ints,
    hessian: Floats,
    information: dict[str, Floats],
    item: list[str],
    S: int,
) -> _Part:
    """Assemble and eliminate the item parameters of one query."""
    span = slice(data.offsets[q], data.offsets[q + 1])
    own = np.concatenate([information[name][span] for name in item])
    N = len(own)
    place = np.where(index >= 0, index, N - 1 - index)
    place = np.where(index == UNUSED, N + S, place)
    M = N + S + 1
    cell = place[:, :, None] * M + place[:, None, :]
    J = sum_by(cell.ravel(), hessian.ravel(), M * M).reshape(M, M)
    J = (J + J.T) / 2
    items, cross, shared = J[:N, :N], J[:N, N : N + S], J[N : N + S, N : N + S]
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
