"""The observed information of one query of a chain model, exactly, pattern by pattern.

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
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from logeval.running.arrays import Bools, Floats, Ints
from logeval.running.kernels import njit


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
