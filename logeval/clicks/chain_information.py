"""Uncertainty of chain models: the observed information of the parameters' logits.

For each pattern the gradient of ln P(c) in the w, stay and skip of its own positions is exact
(``gradient_rows``); the model's ``pull`` turns it into the gradient in its parameters; central
differences of that give the pattern's Hessian. Summed over patterns, with the prior's
(a + b) x (1 - x) added, this is the observed information J. It is an arrow: items of different
queries meet only in the shared parameters, so J is inverted query by query, the shared part
through its Schur complement. The variance of each logit is the diagonal of the inverse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.linalg import lapack
from scipy.special import expit, logit

from logeval.arrays import Bools, Floats, Ints
from logeval.clicks.patterns import Patterns

STEP = 1e-4
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
    """d ln P(c) / d w_k, d stay_k and d skip of each pattern; see chain_em for B."""
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


@dataclass(frozen=True)
class Local:
    """A model seen from its patterns: how its parameters make chains, and gradients back.

    ``push`` maps the parameters at each pattern, by field: (P, K) for items and positions,
    (P,) for scalars, to (w, stay, skip); ``pull`` maps them and the gradient in
    (w, stay, skip) to the gradient in each parameter.
    """

    push: Callable[[dict[str, Floats]], tuple[Floats, Floats, Floats]]
    pull: Callable[[dict[str, Floats], Floats, Floats, Floats], dict[str, Floats]]


def variances(
    data: Patterns,
    group: Ints,
    G: int,
    local: Local,
    item: dict[str, Floats],
    shared: dict[str, Floats],
    prior: dict[str, Floats],
) -> dict[str, Floats]:
    """The variance of the logit of every parameter, in its shape.

    ``item`` holds (I,) arrays, ``shared`` (G, K) or (G,) ones, ``prior`` the a + b of each.
    """
    columns, at, index = _columns(data, group, item, shared)
    hessian = _hessians(data, local, columns, at, list(item) + list(shared))
    out = {name: np.full(v.shape, np.inf) for name, v in (item | shared).items()}
    information = {n: prior[n] * v * (1 - v) for n, v in (item | shared).items()}
    S = sum(v.reshape(G, -1).shape[1] for v in shared.values())
    by_query = np.argsort(data.query, kind="stable")
    bounds = np.searchsorted(data.query[by_query], np.arange(data.Q + 1))
    queries_of = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[queries_of], np.arange(G + 1))
    for g in range(G):
        diagonal = [information[n].reshape(G, -1)[g] for n in shared]
        schur = np.diag(np.concatenate(diagonal)) if shared else np.zeros((0, 0))
        parts = []
        for q in queries_of[starts[g] : starts[g + 1]]:
            rows = by_query[bounds[q] : bounds[q + 1]]
            part = _block(data, q, rows, index, hessian, information, list(item), S)
            schur += part.shared_information
            parts.append(part)
        schur_inverse = _inverse(schur)
        for part in parts:
            spread = part.cross_solved @ schur_inverse
            variance = part.item_variance + np.einsum("is,is->i", spread, part.cross_solved)
            for j, name in enumerate(item):
                n = data.offsets[part.q + 1] - data.offsets[part.q]
                out[name][data.offsets[part.q] : data.offsets[part.q + 1]] = variance[
                    j * n : (j + 1) * n
                ]
        start = 0
        for name in shared:
            view = out[name].reshape(G, -1)
            size = view.shape[1]
            view[g] = np.diag(schur_inverse)[start : start + size]
            start += size
    return out


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
    shared ones as -1 - their place; unused columns are marked by the smallest integer.
    """
    unused = np.iinfo(np.int64).min
    g = group[data.query]
    local_item = np.where(data.items >= 0, data.items - data.offsets[data.query][:, None], unused)
    n_items = np.diff(data.offsets)[data.query]
    columns, at, index = [], [], []
    for j, (name, value) in enumerate(item.items()):
        for k in range(data.K):
            shown = data.items[:, k] >= 0
            columns.append(logit(_inside(value[np.where(shown, data.items[:, k], 0)])))
            at.append((name, k))
            index.append(np.where(shown, local_item[:, k] + j * n_items, unused))
    start = 0
    for name, value in shared.items():
        flat = value.reshape(len(value), -1)
        for k in range(flat.shape[1]):
            columns.append(logit(_inside(flat[g, k])))
            at.append((name, k if value.ndim > 1 else -1))
            used = data.length > k if value.ndim > 1 else np.ones(len(g), dtype=np.bool_)
            index.append(np.where(used, -1 - start - k, unused))
        start += flat.shape[1]
    return columns, at, np.stack(index, axis=1)


def _hessians(
    data: Patterns,
    local: Local,
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
        w, stay, skip = local.push(params)
        dw, dstay, dskip = np.empty_like(w), np.empty_like(w), np.empty(len(w))
        gradient_rows(w, stay, skip, data.clicks, data.length, data.last_click, dw, dstay, dskip)
        pulled = local.pull(params, dw, dstay, dskip)
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
    rows: Ints,
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
    place = np.where(index[rows] >= 0, index[rows], N - 1 - index[rows])
    place = np.where(index[rows] == np.iinfo(np.int64).min, N + S, place)
    J = np.zeros((N + S + 1, N + S + 1))
    np.add.at(J, (place[:, :, None], place[:, None, :]), hessian[rows])
    J = (J + J.T) / 2
    items, cross, shared = J[:N, :N], J[:N, N : N + S], J[N : N + S, N : N + S]
    items[np.diag_indices(N)] += own
    if N > MAX_DENSE:
        inverse_diagonal = 1.0 / np.maximum(np.diag(items), 1e-12)
        solved = cross * inverse_diagonal[:, None]
        return _Part(q, inverse_diagonal, solved, shared - cross.T @ solved)
    inverse = _inverse(items)
    solved = inverse @ cross
    return _Part(q, np.diag(inverse).copy(), solved, shared - cross.T @ solved)


def _inverse(J: Floats) -> Floats:
    """The inverse of a symmetric matrix; directions without information get a huge variance."""
    if not len(J):
        return J
    ridge = 1e-9 * max(float(np.abs(np.diag(J)).max()), 1.0)
    factor, failed = lapack.dpotrf(J + ridge * np.eye(len(J)), lower=1)
    if failed:
        values, vectors = np.linalg.eigh(J)
        return (vectors / np.maximum(values, ridge)) @ vectors.T
    inverse, _ = lapack.dpotri(factor, lower=1)
    return np.tril(inverse) + np.tril(inverse, -1).T


def _inside(value: Floats) -> Floats:
    return np.clip(value, 1e-7, 1.0 - 1e-7)
