"""Examination from swaps, without a model of attraction: intervention harvesting.

An item that was clicked at two ranks was the same item at both, so its clicks there compare the
ranks (Agarwal et al., "Estimating position bias without intrusive interventions", WSDM 2019; Fang
et al., SIGIR 2019). With impressions n(i, k) and clicks c(i, k) of (query, item) i at rank k the
examination of rank k is found relative to the first,

* pivot: by the items seen at both rank 1 and rank k,
* chain: by the product over neighbouring ranks, of the items seen at both,
* all pairs: by all items at once.

Two ranks are compared as strata are, by Mantel and Haenszel's ratio

    sum_i c(i, k) n(i, l) / (n(i, k) + n(i, l))  /  sum_i c(i, l) n(i, k) / (n(i, k) + n(i, l)),

whose weights serve many rare items; the papers weigh by the shares of rankers, which a log need not
tell. All pairs solve, for every k, with pi(i, k) proportional to n(i, k) e(k) and of sum 1 over k,

    sum_i c(i, k) - c(i) pi(i, k) = 0,

which has mean 0 whatever the attraction of the items is. All this holds if clicks are the product
of what attracts and what is examined by rank (a PBM), with one examination for all queries.

Every estimate is nearly linear in the clicks given what was shown, sum of g(i, k) c(i, k), and its
variance is that of the sum: of each (item, rank), plus what clicks of one SERP have in common.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd

from logeval.clicks.estimation.browsing.cells import Cells, fold
from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.fitted import FittedModel, averaged
from logeval.clicks.support.graph import FIRM, parts_of
from logeval.running.arrays import Floats, Ints, sum_by

METHODS = ("all pairs", "chain", "pivot")
NORMAL = 1.959964
STEPS, TOLERANCE = 200, 1e-10


class Linear(NamedTuple):
    """An estimate of log e, (K,), and its slopes in the clicks of every cell, (cells, K)."""

    log_e: Floats
    slopes: Floats


def harvest(data: Patterns) -> pd.DataFrame:
    """Examination relative to the first rank: a row per method and rank, with 95% intervals.

    A rank that swaps do not tie to the first has no value.
    """
    cells = fold(data, lambda block: block.shown.position, data.K, 1, np.zeros(data.Q, np.int64))
    rows = []
    for method, estimate in zip(METHODS, (_all_pairs, _chain, _pivot), strict=True):
        found = estimate(cells)
        error = np.sqrt(_variance(found, cells, data))
        for k in range(data.K):
            e, half = found.log_e[k], NORMAL * error[k]
            low, value, high = np.exp([e - half, e, e + half])
            rows.append((method, k + 1, value, low, high))
    return pd.DataFrame(rows, columns=["method", "rank", "examination", "low", "high"])


def harvested_beside(models: Iterable[FittedModel], data: Patterns) -> pd.DataFrame | None:
    """``harvest``, and a column for every model that has examination by position.

    Its mean over the queries, by their SERPs; None where no query has two ranks.
    """
    if data.K < 2:
        return None
    table = harvest(data)
    for fitted in models:
        if fitted.kind.examined_by == "position" and len(fitted.classes) == 1:
            e = fitted.estimates["e"].value
            weight = np.nan_to_num(fitted.serps, nan=1.0) if len(e) > 1 else np.ones(1)
            mean = averaged(e / np.maximum(e[:, :1], 1e-12), weight, fitted.positions)
            more = np.full(max(data.K - len(mean), 0), np.nan)
            table[fitted.model] = np.append(mean, more)[table["rank"] - 1]
    return table


def _all_pairs(cells: Cells) -> Linear:
    """The ranks that are firmly tied to the first, all at once, by Newton's method."""
    item, k, n, c = cells.item, cells.cell, cells.impressions, cells.clicks
    part = parts_of(cells).part[0]
    there = np.flatnonzero(part == part[0]) if part[0] >= 0 else np.empty(0, dtype=np.int64)
    mine = np.isin(k, there)
    log_e = np.full(cells.J, np.nan)
    slopes = np.zeros((len(item), cells.J))
    if not len(there):
        return Linear(log_e, slopes)
    place = np.searchsorted(there, k[mine])
    rows, K = item[mine], len(there)
    total = np.bincount(rows, c[mine], minlength=cells.I)[rows]
    theta = np.zeros(K)

    def shares(theta: Floats) -> Floats:
        weight: Floats = n[mine] * np.exp(theta)[place]
        shares: Floats = weight / sum_by(rows, weight, cells.I)[rows]
        return shares

    def information(pi: Floats) -> Floats:
        H = np.diag(sum_by(place, total * pi, K))
        first, second, both = _together(rows, place)
        np.subtract.at(H, (first, second), total[both[0]] * pi[both[0]] * pi[both[1]])
        return H[1:, 1:]

    for _ in range(STEPS):
        pi = shares(theta)
        score = np.bincount(place, c[mine] - total * pi, minlength=K)[1:]
        step = np.linalg.solve(information(pi) + 1e-12 * np.eye(K - 1), score)
        theta[1:] += np.clip(step, -1.0, 1.0)
        if np.abs(step).max(initial=0.0) < TOLERANCE:
            break
    pi = shares(theta)
    inverse = np.zeros((K, K))
    inverse[1:, 1:] = np.linalg.inv(information(pi))
    # of a click of item i at k: the gradient is 1 at k, less pi(i, .)
    average = np.zeros((cells.I, K))
    np.add.at(average, rows, pi[:, None] * inverse[:, place].T)
    own = np.zeros((len(rows), cells.J))
    own[:, there] = inverse[:, place].T - average[rows]
    slopes[mine] = own
    log_e[there] = theta
    return Linear(log_e, slopes)


def _together(item: Ints, place: Ints) -> tuple[Ints, Ints, tuple[Ints, Ints]]:
    """All ordered pairs of rows of the same item: their places, and the rows."""
    start = np.flatnonzero(np.r_[True, item[1:] != item[:-1]])
    size = np.diff(np.r_[start, len(item)])
    first = np.repeat(np.arange(len(item)), np.repeat(size, size))
    within = np.arange(len(first)) - np.repeat(np.cumsum(size * size) - size * size, size * size)
    second = np.repeat(start, size * size) + within % np.repeat(size, size * size)
    return place[first], place[second], (first, second)


def _pair(cells: Cells, k: int, m: int) -> tuple[float, Floats]:
    """Log of the ratio of rank m to rank k, and its slopes; nan without ``FIRM`` clicks on both."""
    N = np.zeros((2, cells.I))
    for row, rank in enumerate((k, m)):
        at = cells.cell == rank
        N[row, cells.item[at]] = cells.impressions[at]
    both = N.sum(axis=0)
    slopes, sums = np.zeros(len(cells.item)), []
    for rank, other in ((k, N[1]), (m, N[0])):
        at = cells.cell == rank
        i = cells.item[at]
        weight = np.divide(other[i], both[i], out=np.zeros(len(i)), where=both[i] > 0)
        sums.append(float(weight @ cells.clicks[at]))
        slopes[at] = weight / max(sums[-1], 1e-300) * (1.0 if rank == m else -1.0)
    if min(sums) < FIRM:
        return np.nan, np.zeros(len(slopes))
    return float(np.log(sums[1] / sums[0])), slopes


def _pivot(cells: Cells) -> Linear:
    """Every rank by the items that were seen there and at the first."""
    found = [(0.0, np.zeros(len(cells.item)))] + [_pair(cells, 0, k) for k in range(1, cells.J)]
    return Linear(np.array([e for e, _ in found]), np.stack([g for _, g in found], axis=1))


def _chain(cells: Cells) -> Linear:
    """Every rank by the one above."""
    steps = [(0.0, np.zeros(len(cells.item)))]
    steps += [_pair(cells, k - 1, k) for k in range(1, cells.J)]
    log_e = np.cumsum([e for e, _ in steps])
    return Linear(log_e, np.cumsum(np.stack([g for _, g in steps], axis=1), axis=1))


def _variance(found: Linear, cells: Cells, data: Patterns) -> Floats:
    """The variance of every log e, (K,).

    Of n > 1 impressions with c clicks that of their number is estimated by c (n - c) / (n - 1),
    of a single one by c. What the clicks of a SERP have in common is added where it is positive.
    """
    n, c, g = cells.impressions, cells.clicks, found.slopes
    own = np.where(n > 1, c * (n - c) / np.maximum(n - 1, 1), c) @ g**2
    e = np.exp(np.nan_to_num(found.log_e))
    shown = np.bincount(cells.item, n * e[cells.cell], minlength=cells.I)
    w = np.bincount(cells.item, c, minlength=cells.I) / np.maximum(shown, 1e-300)
    key = cells.item * cells.J + cells.cell  # ascending
    row = np.searchsorted(key, data.shown.item * cells.J + data.shown.position)
    left = data.shown.clicked - w[data.shown.item] * e[data.shown.position]
    each = g[row] * left[:, None]
    psi = np.zeros((data.P, cells.J))
    np.add.at(psi, data.shown.pattern, each)
    common = data.count @ psi**2 - data.shown.count @ each**2
    variance: Floats = own + np.maximum(common, 0.0)
    return variance


def swap_weights(data: Patterns) -> Floats:
    """The weights of the chain's ratios for the result at each position of a pattern, (P, K, 2).

    As the upper of two neighbouring ranks, and as the lower one.
    """
    N = np.zeros((data.I, data.K + 2))  # by rank from 1, and nothing beyond
    np.add.at(N, (data.shown.item, data.shown.position + 1), data.shown.count)
    i, k = data.shown.item, data.shown.position + 1
    found = np.zeros((data.P, data.K, 2))
    for side, other in enumerate((k + 1, k - 1)):
        beside = N[i, other]
        found[data.shown.pattern, k - 1, side] = beside / (beside + N[i, k])
    return found
