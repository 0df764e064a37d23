"""How firmly the places of a query are tied together by items that were clicked at several of them.

A place is a position (PBM), or a position and the previous click (UBM). Clicks at place k on item i
are expected in proportion to w(i) e(k), so only items seen at two places say how these compare:
w and e are known up to one factor in each connected part of the graph of items and places (Chen et
al., "Identifiability matters", 2023, arXiv 2309.15560), and up to chance besides. With clicks
c(i, k), the items taken out, the information on log e is the Laplacian of the graph of places with
weights

    W(k, l) = sum_i c(i, k) c(i, l) / c(i),

and places that are tied by W clicks are compared with a standard error of 1 / sqrt(W). So the ties
are measured in clicks, and one of fewer than ``FIRM`` clicks is none: it leaves a factor of about
1.4 open. The firmest tie is closed first, and the weights of what it joins are added up, until no
tie is firm; what is joined is a part. The last tie of all is the weakest cut.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from logeval.clicks.estimation.browsing.cells import Cells
from logeval.running.arrays import Bools, Floats, Ints
from logeval.running.kernels import njit

FIRM = 10.0  # clicks


class Parts(NamedTuple):
    """The parts of G groups of J places."""

    part: Ints  # (G, J) of each place, named by one of its places; -1: never shown
    cut: Floats  # (G,) clicks that tie the last two parts together; inf: there is one place only
    side: Bools  # (G, J) the places on one side of that cut
    moment: Floats  # (G,) sum of W(k, l) (k - l)^2: the information on a decay per place


def parts_of(cells: Cells, firm: float = FIRM) -> Parts:
    """The parts of every group of cells."""
    G, J = cells.G, cells.J
    group, place = cells.cell // J, cells.cell % J
    first = np.searchsorted(group, np.arange(G + 1))
    found = Parts(
        np.full((G, J), -1, dtype=np.int64),
        np.full(G, np.inf),
        np.zeros((G, J), dtype=np.bool_),
        np.zeros(G),
    )
    distance = np.subtract.outer(np.arange(J), np.arange(J)) ** 2.0
    for g in range(G):
        mine = slice(first[g], first[g + 1])
        W = np.zeros((J, J))
        tie(cells.item[mine], place[mine], cells.clicks[mine], W)
        found.moment[g] = (W * distance).sum() / 2
        there = np.unique(place[mine])
        part, joined = np.arange(len(there)), np.arange(len(there))
        side = np.zeros(len(there), dtype=np.bool_)
        found.cut[g] = _join(W[np.ix_(there, there)], firm, part, joined, side)
        found.part[g, there], found.side[g, there] = there[part], side
    return found


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
def _join(W: Floats, firm: float, part: Ints, joined: Ints, side: Bools) -> float:
    """Close the ties of n places, the firmest first; W is used up. Returns the last tie.

    Every place begins as a part of its own; it is alive while ``joined`` names it.
    """
    n = len(W)
    last = np.inf
    for left in range(n, 1, -1):
        best, a, b = -1.0, 0, 0
        for k in range(n):
            for other in range(k + 1, n):
                if joined[k] == k and joined[other] == other and W[k, other] > best:
                    best, a, b = W[k, other], k, other
        last = best
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
    return last
