"""Inverses of information matrices.

The observed information of one query of a chain model, exactly, pattern by pattern.

In the attraction w_k, the continuation after a click stay_k and after a skip (``skip``) of its own
positions, a pattern with last click l has

    ln P(c) = sum_{k <= l} [c_k ln(w_k stay_k [k < l]) + (1 - c_k) ln((1 - w_k) skip)] + ln f,
    f = 1 - stay_l + stay_l B_{l+1}     (f = B_0 without a click)

with B of ``inference``. The first sum has diagonal second derivatives. Those of f follow
from B_{l+1}: with S_j = prod_{l < i < j} (1 - w_i) skip and R_j = 1 - skip + skip B_{j+1},

    dB / dw_j = -S_j R_j,   d2B / dw_j dw_k = S_k R_k / (1 - w_j)  for j < k,

and the derivatives in skip from the recursion of B. Parameters x enter through their logits, w_k
through one of them and stay_k through several, in each of which it is linear, so that the chain
rule needs only slopes d stay / dx and the mixed second derivatives.

What clicks say of the parameters that the items of a query share, in chain models.

Minus the second derivatives of ln P(c) (``hessian``) in the logits, summed over the patterns of a
query, with the prior's (a + b) x (1 - x) added, are the observed information J. The items are
eliminated (what is left is the Schur complement), and the diagonal of its inverse is the variance
of the logit of each shared parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from logeval.clicks.estimation.em import Params
from logeval.clicks.estimation.patterns import FoldedClicks, Patterns
from logeval.clicks.users.chain import Formulas, Parameters, spread
from logeval.running.arrays import Bools, Floats, Ints
from logeval.running.kernels import njit

SMALL = 128  # matrices up to this size are inverted without BLAS


def inverse_of(J: Floats) -> Floats:
    """The inverse of a symmetric matrix; directions without information get a huge variance."""
    if not len(J):
        return J
    ridge = 1e-9 * max(float(np.abs(np.diag(J)).max()), 1.0)
    inverse = np.empty_like(J)
    if len(J) <= SMALL and invert_small(J + ridge * np.eye(len(J)), inverse):
        return inverse
    factor, failed = lapack.dpotrf(J + ridge * np.eye(len(J)), lower=1)
    if failed:
        values, vectors = np.linalg.eigh(J)
        return (vectors / np.maximum(values, ridge)) @ vectors.T
    inverse, _ = lapack.dpotri(factor, lower=1)
    return np.tril(inverse) + np.tril(inverse, -1).T


@njit(cache=True, nogil=True)
def invert_small(J: Floats, inverse: Floats) -> bool:
    """Inverse by Cholesky without the threads of a BLAS, which cost more than small matrices."""
    N = J.shape[0]
    C = np.zeros((N, N))
    for i in range(N):
        for j in range(i + 1):
            x = J[i, j]
            for k in range(j):
                x -= C[i, k] * C[j, k]
            if i > j:
                C[i, j] = x / C[j, j]
            elif x <= 0.0:
                return False
            else:
                C[i, i] = np.sqrt(x)
    for j in range(N):  # C becomes its own inverse
        C[j, j] = 1.0 / C[j, j]
        for i in range(j + 1, N):
            x = 0.0
            for k in range(j, i):
                x -= C[i, k] * C[k, j]
            C[i, j] = x / C[i, i]
    for i in range(N):
        for j in range(i + 1):
            x = 0.0
            for k in range(i, N):
                x += C[k, i] * C[k, j]
            inverse[i, j] = x
            inverse[j, i] = x
    return True


@njit(cache=True, nogil=True)
def tail_derivatives(w: Floats, skip: float, first: int, n: int, d: Floats, h: Floats) -> float:
    """B_first, its gradient d and its second derivatives h in w_first..w_{n-1} and skip (last).

    Places of d and h are positions, K that of skip.
    """
    K = w.shape[0]
    B, D, DD = 1.0, 0.0, 0.0  # B_k, dB_k / dskip, d2B_k / dskip2
    R, dR = np.ones(K), np.zeros(K)  # R_k and dR_k / dskip
    for k in range(n - 1, first - 1, -1):
        if k < n - 1:
            R[k] = 1.0 - skip + skip * B
            dR[k] = B - 1.0 + skip * D
            DD = (1.0 - w[k]) * (2.0 * D + skip * DD)
            D = (1.0 - w[k]) * dR[k]
        B = (1.0 - w[k]) * R[k]
    S = 1.0
    for j in range(first, n):
        d[j] = -S * R[j]
        h[j, j] = 0.0
        h[j, K] = -S * (dR[j] + (j - first) * R[j] / skip)
        h[K, j] = h[j, K]
        for i in range(first, j):
            h[i, j] = S * R[j] / (1.0 - w[i])
            h[j, i] = h[i, j]
        S *= (1.0 - w[j]) * skip
    d[K] = D
    h[K, K] = DD
    return B


class Places(NamedTuple):
    """Patterns, the parameters at each of their positions, and where these are in J.

    Going on after a click depends on F parameters; ``mixed`` (F, F) are its mixed second
    derivatives in them.
    """

    clicks: Bools  # (P, K)
    length: Ints  # (P,)
    last_click: Ints  # (P,)
    serps: Floats  # (P,)
    w: Floats  # (P, K)
    stay: Floats  # (P, K)
    skip: Floats  # (P,)
    w_place: Ints  # (P, K) of the logit of w_k
    skip_place: Ints  # (P,) of that of skip, below 0 where it is known
    value: Floats  # (F, P, K)
    slope: Floats  # (F, P, K) d stay / dx
    place: Ints  # (F, P, K)
    mixed: Floats


@njit(cache=True, nogil=True)
def add_information(at: Places, first: int, end: int, J: Floats) -> None:
    """Add minus the second derivatives in the logits of patterns first..end - 1 to J."""
    w, w_place, skip_place = at.w, at.w_place, at.skip_place
    F, _, K = at.value.shape
    d, h = np.zeros(K + 1), np.zeros((K + 1, K + 1))
    for p in range(first, end):
        n, last, m, go = at.length[p], at.last_click[p], at.serps[p], at.skip[p]
        skips = 0
        for k in range(last + 1):
            x = w[p, k]
            J[w_place[p, k], w_place[p, k]] += m * x * (1.0 - x)
            if not at.clicks[p, k]:
                skips += 1
            elif k < last:
                s = at.stay[p, k]
                add_stay(p, k, m, 1.0 / s, -1.0 / (s * s), at, J)
        d_skip, h_skip = skips / go, -skips / (go * go)
        if last < n - 1:
            d[:] = 0.0
            h[:] = 0.0
            B = tail_derivatives(w[p], go, last + 1, n, d, h)
            s, f = 1.0, B
            if last >= 0:
                s = at.stay[p, last]
                f = 1.0 - s + s * B
                g = (B - 1.0) / f
                add_stay(p, last, m, g, -g * g, at, J)
            # second derivatives of ln f in the w below the last click, skip, and stay_last
            for a in range(last + 1, n + 1):
                ja = a if a < n else K
                at_a = w_place[p, ja] if a < n else skip_place[p]
                if at_a < 0:
                    continue
                xa = w[p, ja] if a < n else go
                ga = s * d[ja] / f
                scale_a = xa * (1.0 - xa)
                if a < n:
                    J[at_a, at_a] -= m * ga * scale_a * (1.0 - 2.0 * xa)
                for b in range(last + 1, n + 1):
                    jb = b if b < n else K
                    at_b = w_place[p, jb] if b < n else skip_place[p]
                    if at_b < 0:
                        continue
                    xb = w[p, jb] if b < n else go
                    gb = s * d[jb] / f
                    J[at_a, at_b] -= m * (s * h[ja, jb] / f - ga * gb) * scale_a * xb * (1.0 - xb)
                if last >= 0:  # with stay_last: f = 1 - s + s B
                    cross = d[ja] / f - ga * (B - 1.0) / f
                    for i in range(F):
                        x = at.value[i, p, last]
                        at_i, to = at.place[i, p, last], at.slope[i, p, last] * x * (1.0 - x)
                        J[at_a, at_i] -= m * cross * scale_a * to
                        J[at_i, at_a] -= m * cross * scale_a * to
            d_skip += s * d[K] / f
        if skip_place[p] >= 0:
            x = go * (1.0 - go)
            J[skip_place[p], skip_place[p]] -= m * (h_skip * x * x + d_skip * x * (1.0 - 2.0 * go))


@njit(cache=True, nogil=True)
def add_stay(p: int, k: int, m: float, g: float, gg: float, at: Places, J: Floats) -> None:
    """The part of stay_k, whose first and second derivatives of ln P are g and gg."""
    value, slope, place = at.value, at.slope, at.place
    for i in range(value.shape[0]):
        x = value[i, p, k]
        xi = x * (1.0 - x)
        J[place[i, p, k], place[i, p, k]] -= m * g * slope[i, p, k] * xi * (1.0 - 2.0 * x)
        for j in range(value.shape[0]):
            y = value[j, p, k]
            both = xi * y * (1.0 - y)
            J[place[i, p, k], place[j, p, k]] -= (
                m * (gg * slope[i, p, k] * slope[j, p, k] + g * at.mixed[i, j]) * both
            )


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
