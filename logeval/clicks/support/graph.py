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
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from logeval.clicks.estimation.browsing.cells import Cells
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
