"""How firmly the places of a query are tied together by items that were seen at several of them.

A place is a position (PBM), or a position and the previous click (UBM). Clicks at place k on item i
are expected in proportion to w(i) e(k), so only items seen at two places say how these compare:
w and e are known up to one factor in each connected part of the graph of items and places (Chen et
al., "Identifiability matters", 2023, arXiv 2309.15560), and up to chance besides. With m(i, k)
clicks expected on what was shown, the items taken out, the information on log e is the Laplacian of
the graph of places with weights

    W(k, l) = sum_i m(i, k) m(i, l) / m(i),

and places that are tied by W clicks are compared with a standard error of 1 / sqrt(W). A prior that
leaves a factor of e open (a standard deviation of 1 of its log) keeps 1 / sqrt(1 + W) of its width:
with ``FIRM`` clicks 30%. A weaker tie is none. The firmest tie is closed first, and the weights of
what it joins are added up, until no tie is firm; what is joined is a part. The last tie of all is
the weakest cut.

Ties may be loose for two reasons. If items were seen at all places alike, two groups of places with
n and m of N impressions would be tied by n m / N impressions; the share of this that there is says
how far the lists ``mix``, whatever the number of SERPs and clicks. Where they mix, more SERPs of
the same kind will do; where they do not, other lists are needed.

Examination from swaps, without a model of attraction: intervention harvesting.

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

from logeval.clicks.estimation.browsing import Cells, fold
from logeval.clicks.estimation.patterns import Patterns
from logeval.clicks.fitted import FittedModel, averaged
from logeval.running.arrays import Bools, Floats, Ints, sum_by
from logeval.running.kernels import njit

FIRM = 10.0  # clicks
CARRIES = 0.8  # share of a query's impressions whose items and places must be comparable
BELIEF, ROUNDS = 3.0, 3  # clicks by which items are taken for alike; steps of m(i, k)


class Parts(NamedTuple):
    """The parts of G groups of J places."""

    part: Ints  # (G, J) of each place, named by one of its places; -1: never shown
    cut: Floats  # (G,) clicks that tie the last two parts together; inf: there is one place only
    side: Bools  # (G, J) the places on one side of that cut
    moment: Floats  # (G,) sum of W(k, l) (k - l)^2: the information on a decay per place
    hold: Floats  # (G,) clicks of the weakest tie that it takes to join ``CARRIES`` of impressions
    mix: Floats  # (G,) the same of the share of what would tie them if lists mixed


def parts_of(cells: Cells, firm: float = FIRM, clicks: Floats | None = None) -> Parts:
    """The parts of every group of cells, by the clicks to be expected in them."""
    G, J = cells.G, cells.J
    group, place = cells.cell // J, cells.cell % J
    first = np.searchsorted(group, np.arange(G + 1))
    clicks = expected_clicks(cells) if clicks is None else clicks
    found = Parts(
        np.full((G, J), -1, dtype=np.int64),
        np.full(G, np.inf),
        np.zeros((G, J), dtype=np.bool_),
        np.zeros(G),
        np.full(G, np.inf),
        np.ones(G),
    )
    distance = np.subtract.outer(np.arange(J), np.arange(J)) ** 2.0
    for g in range(G):
        mine = slice(first[g], first[g + 1])
        W, V = np.zeros((J, J)), np.zeros((J, J))
        tie(cells.item[mine], place[mine], clicks[mine], W)
        tie(cells.item[mine], place[mine], cells.impressions[mine], V)
        found.moment[g] = (W * distance).sum() / 2
        there = np.unique(place[mine])
        shown = sum_by(place[mine], cells.impressions[mine], J)[there]
        part, joined = np.arange(len(there)), np.arange(len(there))
        side = np.zeros(len(there), dtype=np.bool_)
        both = np.ix_(there, there)
        _, found.mix[g] = _join(V[both], shown.copy(), True, firm, part, joined, side)
        part, joined = np.arange(len(there)), np.arange(len(there))
        found.cut[g], found.hold[g] = _join(W[both], shown, False, firm, part, joined, side)
        found.part[g, there], found.side[g, there] = there[part], side
    return found


def expected_clicks(cells: Cells) -> Floats:
    """m(i, k) of every row: by impressions, the factor of the place, and that of the item.

    Clicks themselves would do, but for chance: of an item shown rarely at a place they are 0 or 1.
    """
    n, clicks = cells.impressions, cells.clicks
    by_item, by_cell = cells.sums(clicks)
    _, shown = cells.sums(n)
    p = by_cell / np.maximum(shown, 1e-300)
    for _ in range(ROUNDS):
        x, _ = cells.sums(n * p[cells.cell])
        m: Floats = n * p[cells.cell] * ((by_item + BELIEF) / (x + BELIEF))[cells.item]
        p = p * by_cell / np.maximum(cells.sums(m)[1], 1e-300)
    return m


# Loops in place of sum(), arange() and [mask]: these compile in a second and a half.
@njit(cache=True, nogil=True)
def tie(item: Ints, place: Ints, clicks: Floats, W: Floats) -> None:
    """Add up W; the rows of an item follow each other."""
    start = 0
    for row in range(1, len(item) + 1):
        if row < len(item) and item[row] == item[start]:
            continue
        total = 0.0
        for a in range(start, row):
            total += clicks[a]
        if total > 0.0:
            for a in range(start, row):
                for b in range(a + 1, row):
                    weight = clicks[a] * clicks[b] / total
                    W[place[a], place[b]] += weight
                    W[place[b], place[a]] += weight
        start = row


@njit(cache=True, nogil=True)
def _join(
    W: Floats, size: Floats, relative: bool, firm: float, part: Ints, joined: Ints, side: Bools
) -> tuple[float, float]:
    """Close the ties of n places, the firmest first; W and the sizes of places are used up.

    A tie is W, or the share of n m / N that it is, for the sizes n and m of what it joins.
    Returns the last tie, and the weakest of those until ``CARRIES`` of the sizes are together.
    Every place begins as a part of its own; it is alive while ``joined`` names it.
    """
    n = len(W)
    last, weakest, hold, total = np.inf, np.inf, 0.0, 0.0
    for k in range(n):
        total += size[k]
    for k in range(n):
        if size[k] >= CARRIES * total:
            hold = np.inf
    for left in range(n, 1, -1):
        best, a, b = -1.0, 0, 0
        for k in range(n):
            for other in range(k + 1, n):
                if joined[k] == k and joined[other] == other:
                    tied = W[k, other]
                    if relative:
                        tied *= total / (size[k] * size[other])
                    if tied > best:
                        best, a, b = tied, k, other
        last = best
        weakest = min(weakest, best)
        size[a] += size[b]
        if hold == 0.0 and size[a] >= CARRIES * total:
            hold = weakest
        for k in range(n):
            if left == 2:
                side[k] = joined[k] == b
            if joined[k] == b:
                joined[k] = a
            W[a, k] += W[b, k]
            W[k, a] += W[k, b]
        W[a, a] = 0.0
        if best < firm:
            firm = np.inf  # what is joined from now on is no part
            continue
        for k in range(n):
            part[k] = joined[k]
    return last, hold


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
