"""Whether users change: is the same item clicked as often in every period?

A stratum holds the searches that showed an item of a query at a position, without a click above it.
Users who do not change click there with one probability: those of a PBM, UBM, CM, DCM and SDBN
exactly, whatever else was shown, so lists need not recur, and no model is fitted. Given the n_j
searches of each period, and C clicks on all N of them, the clicks of period j deviate by

    U_j = c_j - n_j C / N,    cov(U_j, U_l) = C (N - C) (N 1[j = l] n_j - n_j n_l) / (N^2 (N - 1)),

which are summed over the positions of an item. U' cov^-1 U is chi-squared (Mantel and Haenszel,
1959; Birch, 1965), and is summed over items; directions in which few clicks vary are left out. If
the attraction of an item moves by b s_j on the logit scale, U has the mean cov s b: that says how
surely a change would have been found. Where no item recurs at a position, nothing would be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2, ncx2

from logeval.clicks.drift.fold import Strata, fold_strata
from logeval.log.log import Log
from logeval.log.queries import Query
from logeval.running.arrays import Bools, Floats, distinct, sum_by

LEVEL, LOG_LEVEL = 0.05, 0.01  # of the test of a query, and of that of the log as a whole
VARIANCE = 5.0  # clicks squared; chi-squared does not describe sums that vary less
MOVE = 1.0  # sd of the change that is asked about, first period to last, on the logit scale
POWER = 0.5  # with less, no change found says nothing
PARTS, QUERIES = 4, 100  # of a log that is tested along with a fit


@dataclass(frozen=True)
class Change:
    """Of groups of searches: a p-value, and how surely a change by ``MOVE`` would be found."""

    p: Floats  # (G,)
    power: Floats  # (G,)
    level: float

    @property
    def found(self) -> Bools:
        """Whether users change, (G,)."""
        return self.p < self.level

    @property
    def tested(self) -> Bools:
        """Whether the clicks can say, (G,)."""
        return self.found | (self.power >= POWER)

    def record(self) -> dict[str, Any]:
        """Of the first group, for manifests."""
        named = {"p": self.p, "power": self.power, "found": self.found, "tested": self.tested}
        return {name: x[0].item() for name, x in named.items()}


def of_log(log: Log, queries: list[Query] | None, top_queries: int | None) -> Change | None:
    """Of the most frequent queries together; None where the log knows no days, or one."""
    top = QUERIES if top_queries is None else min(QUERIES, top_queries)
    strata = fold_strata(log, PARTS, queries and queries[:QUERIES], top)
    return None if strata is None else changes_of(strata)[1]


def changes_of(data: Strata) -> tuple[Change, Change]:
    """Of each query, and of all together."""
    sums = np.zeros((len(data.queries), 3))
    bounds = np.searchsorted(data.query, np.arange(len(sums) + 1))
    for q in range(len(sums)):  # one by one: the covariances of all may be large
        U, V = deviations(data, slice(bounds[q], bounds[q + 1]))
        variance, direction = np.linalg.eigh(V)
        kept = variance >= VARIANCE
        off = np.einsum("ij,ijk->ik", U, direction)[kept]
        trend = np.einsum("j,ijk->ik", np.linspace(-0.5, 0.5, data.periods), direction)[kept]
        variance = variance[kept]
        sums[q] = kept.sum(), (off**2 / variance).sum(), MOVE**2 * (variance * trend**2).sum()
    return _tested(sums, LEVEL), _tested(sums.sum(axis=0, keepdims=True), LOG_LEVEL)


def deviations(data: Strata, rows: slice) -> tuple[Floats, Floats]:
    """U (items, periods) of some rows, and the covariances (items, periods, periods)."""
    P, most = data.periods, int(data.position.max(initial=0)) + 1
    _, item = np.unique(data.item[rows], return_inverse=True)
    keys, stratum = distinct(item * most + data.position[rows], (item.max() + 1) * most)
    cell, shape = stratum * P + data.period[rows], (len(keys), P)
    n, c = (sum_by(cell, x[rows], len(keys) * P).reshape(shape) for x in (data.shown, data.clicked))
    N, C = n.sum(axis=1, keepdims=True), c.sum(axis=1, keepdims=True)
    one = C * (N - C) / (N**2 * np.maximum(N - 1.0, 1.0))
    both = N[:, :, None] * n[:, :, None] * np.eye(P) - n[:, :, None] * n[:, None, :]
    U, V = np.zeros((item.max() + 1, P)), np.zeros((item.max() + 1, P, P))
    np.add.at(U, keys // most, c - n * C / N)
    np.add.at(V, keys // most, one[:, :, None] * both)
    return U, V


def _tested(sums: Floats, level: float) -> Change:
    freedom, off, moved = sums.T
    there, some = freedom > 0, np.maximum(freedom, 1.0)
    return Change(
        np.where(there, chi2.sf(off, some), 1.0),
        np.where(there, ncx2.sf(chi2.isf(level, some), some, moved), 0.0),
        level,
    )
