"""What the checks count on SERPs and their clicks, and the shares they make of it.

A feature is a count over SERPs: SERPs with two clicks, clicks at rank 3, clicks at rank 5 of SERPs
that have one at rank 2. A component of a check is the ratio of two features, and deviates by

    D = numerator - (E numerator / E denominator) denominator,

which is linear in the features and has mean 0 if the model is right. ``add_one`` is the one
place where clicks become features, for the log and for simulated clicks alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit

MOST_CLICKS = 5  # SERPs with this many clicks or more are counted together
TOP_ITEMS = 10  # of a query, by impressions
MAX_AFTER = 10  # ranks of the check "after a click"
EDGES = np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7])  # of predicted probabilities
BINS = len(EDGES) + 1

CHECKS = {
    "clicks-per-serp": "share of SERPs by number of clicks",
    "ctr-by-rank": "clicks per impression at a rank",
    "first-click": "rank of the first click, as shares of the SERPs with a click",
    "last-click": "rank of the last click, as shares of the SERPs with a click",
    "distance": "ranks from one click to the next, as shares of such pairs",
    "after-click": "clicks at a rank, of the SERPs with a click at an earlier rank",
    "top-items": "clicks per impression of the items shown most",
    "swaps": "clicks at the upper of two neighbouring ranks, on items seen at both",
    "calibration": "clicks per result whose predicted P(click | clicks above) is in a range",
}

SERPS, CLICKED, PAIRS, COUNT = 0, 1, 2, 3  # the first features; COUNT has MOST_CLICKS + 1


@dataclass(frozen=True)
class Layout:
    """Where each feature is, for lists of up to K results."""

    K: int

    @property
    def R(self) -> int:
        """Ranks of the check "after a click"."""
        return min(self.K, MAX_AFTER)

    @cached_property
    def at(self) -> Ints:
        """The first index of each kind of feature, in the order of ``add_one``."""
        sizes = [COUNT + MOST_CLICKS + 1, *[self.K] * 5, self.R**2, *[TOP_ITEMS] * 2, *[BINS] * 3]
        return np.cumsum(sizes)

    @property
    def size(self) -> int:
        """The number of features."""
        return int(self.at[-1])

    @cached_property
    def components(self) -> Components:
        """The components of all checks but ``top-items``, which differ by query, and ``swaps``."""
        shown, rank, first, last, distance, after, *_, q, hit, _ = self.at.tolist()
        k = range(self.K)
        rows: list[tuple[str, str, float, int, int]] = []
        for m in range(MOST_CLICKS + 1):
            rows.append(("clicks-per-serp", _clicks(m), m, COUNT + m, SERPS))
        rows += [("ctr-by-rank", f"rank {j + 1}", j + 1, rank + j, shown + j) for j in k]
        rows += [("first-click", f"rank {j + 1}", j + 1, first + j, CLICKED) for j in k]
        rows += [("last-click", f"rank {j + 1}", j + 1, last + j, CLICKED) for j in k]
        rows += [("distance", f"distance {j}", j, distance + j, PAIRS) for j in k if j]
        for r in range(self.R):
            for j in range(r + 1, self.R):
                label = f"rank {j + 1} after {r + 1}"
                rows.append(("after-click", label, j + 1, after + r * self.R + j, rank + r))
        for b in range(BINS):
            low, high = (0.0, *EDGES)[b], (*EDGES, 1.0)[b]
            rows.append(("calibration", f"{low:g} to {high:g}", (low + high) / 2, hit + b, q + b))
        checks, labels, x, num, den = zip(*rows, strict=True)
        return Components(list(checks), list(labels), np.array(x), np.array(num), np.array(den))

    @property
    def bins(self) -> tuple[slice, slice, slice]:
        """Results, predicted clicks and clicks by range of the predicted probability."""
        n, q, hit, end = self.at[8:12].tolist()
        return slice(n, q), slice(q, hit), slice(hit, end)

    @property
    def items(self) -> tuple[slice, slice]:
        """Impressions and clicks of the items shown most."""
        shown, clicks, end = self.at[6:9].tolist()
        return slice(shown, clicks), slice(clicks, end)


@dataclass(frozen=True)
class Components:
    """Ratios of features: the check, a label, its place on an axis, numerator, denominator."""

    check: list[str]
    label: list[str]
    x: Floats
    num: Ints
    den: Ints


def _clicks(m: int) -> str:
    if m == MOST_CLICKS:
        return f"{m}+ clicks"
    return f"{m} click{'' if m == 1 else 's'}"


@njit(cache=True, nogil=True)
def add_one(c: Ints, q: Floats, top: Ints, at: Ints, R: int, n: float, out: Floats) -> None:
    """Add the features of one SERP, ``n`` times.

    ``q`` are the model's P(c_k = 1 | c_<k), ``top`` the place of each result among the items
    shown most, or -1.
    """
    shown, rank, first, last, distance, after = at[0], at[1], at[2], at[3], at[4], at[5]
    item_shown, item, bin_n, bin_q, bin_hit = at[6], at[7], at[8], at[9], at[10]
    clicks, previous = 0, -1
    for k in range(c.shape[0]):
        b = 0
        while b < BINS - 1 and q[k] >= EDGES[b]:
            b += 1
        out[shown + k] += n
        out[bin_n + b] += n
        out[bin_q + b] += n * q[k]
        if top[k] >= 0:
            out[item_shown + top[k]] += n
        if c[k]:
            out[rank + k] += n
            out[bin_hit + b] += n
            if top[k] >= 0:
                out[item + top[k]] += n
            if previous < 0:
                out[first + k] += n
            else:
                out[distance + k - previous] += n
                out[PAIRS] += n
            if k < R:
                for r in range(k):
                    if c[r]:
                        out[after + r * R + k] += n
            previous = k
            clicks += 1
    out[SERPS] += n
    out[COUNT + min(clicks, MOST_CLICKS)] += n
    if clicks:
        out[last + previous] += n
        out[CLICKED] += n


@njit(cache=True, nogil=True)
def add_rows(
    clicks: Ints, q: Floats, top: Ints, count: Floats, row: Ints, at: Ints, R: int, out: Floats
) -> None:
    """``add_one`` for each SERP i, ``count[i]`` times, into ``out[row[i]]``.

    The places ``top`` of the lists may be fewer: those of simulations repeat.
    """
    for i in range(clicks.shape[0]):
        add_one(clicks[i], q[i], top[i % top.shape[0]], at, R, count[i], out[row[i]])
