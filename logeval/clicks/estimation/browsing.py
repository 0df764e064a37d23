"""Users whose examination depends on a cell (PBM, UBM): P(click) = w_i e_j for item i in cell j.

A cell is a position (PBM) or a position and previous click (UBM). The impressions n and
clicks c of each (i, j) are all that the likelihood sum c ln(w e) + (n - c) ln(1 - w e) needs.
Of an unclicked impression the item was attractive with probability (1 - e) w / (1 - w e), and the
cell examined with probability (1 - w) e / (1 - w e).

Only the products w e are observed. The cells that ``anchor`` picks, one of each group, settle the
scale. In a fit of one class they are fitted at first, then set to ``largest`` of what that found,
if to anything, and known from there on. Classes are fitted without, and scaled where they can be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from logeval.clicks.estimation.beta import binomial
from logeval.clicks.estimation.em import CAP, Params
from logeval.clicks.estimation.estimates import Options, ParameterEstimate
from logeval.clicks.estimation.latent import Count, Counts, Finish, Latent, independent
from logeval.clicks.estimation.patterns import FoldedClicks, Patterns
from logeval.clicks.estimation.priors import Pair
from logeval.running.arrays import Bools, Floats, Ints, distinct, sum_by
from logeval.running.kernels import njit


class Cells(NamedTuple):
    """Impressions and clicks by (item, cell); cells of group g are g * J to (g + 1) * J."""

    item: Ints
    cell: Ints
    impressions: Floats
    clicks: Floats
    I: int  # noqa: E741
    J: int  # cells of a group
    G: int
    item_group: Ints  # (I,)

    def sums(self, weight: Floats) -> tuple[Floats, Floats]:
        """Sums of a weight per row, by item and by cell."""
        by_item = sum_by(self.item, weight, self.I)
        return by_item, sum_by(self.cell, weight, self.G * self.J)


def fold(
    data: FoldedClicks, cell: Callable[[Patterns], Ints], J: int, G: int, group: Ints
) -> Cells:
    """Cells of the shown (pattern, position)s, whose cell within its group ``cell`` gives.

    Rows of an item, and of a group, follow each other.
    """
    item_group = group[data.item_query]
    columns: list[list[np.ndarray]] = [[], [], [], []]
    for block in data.blocks():
        shown = block.shown
        keys, row = distinct(shown.item * J + cell(block), data.I * J)
        item = keys // J
        columns[0].append(item)
        columns[1].append(item_group[item] * J + keys % J)
        columns[2].append(sum_by(row, shown.count, len(keys)))
        columns[3].append(sum_by(row, shown.clicks, len(keys)))
    joined = [np.concatenate(columns.pop(0)) for _ in range(4)]  # each is freed before the next
    if (joined[0][1:] < joined[0][:-1]).any():  # blocks from disk: in the order of memory
        order = np.lexsort((joined[1], joined[0]))
        joined = [column[order] for column in joined]
    return Cells(joined[0], joined[1], joined[2], joined[3], data.I, J, G, item_group)


@njit(cache=True, nogil=True)
def expect_rows(
    cells: Cells, active: Bools, w: Floats, e: Floats,
    attractive: Floats, missing: Floats, examined: Floats, log_likelihood: Floats,
) -> None:  # fmt: skip
    """Expected attractive impressions by item, examined ones by cell, and ln-likelihood.

    And what is missing of the information on w, n P (1 - P) of what may have been attractive.
    """
    n, c = cells.impressions, cells.clicks
    for row in range(n.shape[0]):
        i, j = cells.item[row], cells.cell[row]
        g = j // cells.J
        if not active[g]:
            continue
        x = w[i] * e[j]
        skipped = n[row] - c[row]
        unseen = (1.0 - e[j]) * w[i] / (1.0 - x)
        attractive[i] += c[row] + skipped * unseen
        missing[i] += skipped * unseen * (1.0 - unseen)
        examined[j] += c[row] + skipped * (1.0 - w[i]) * e[j] / (1.0 - x)
        if c[row] > 0.0:
            log_likelihood[g] += c[row] * np.log(max(x, 1e-300))
        log_likelihood[g] += skipped * np.log1p(-x)


@njit(cache=True, nogil=True)
def complete_rows(
    cells: Cells, w: Floats, e: Floats, u: Floats, attractive: Floats, examined: Floats
) -> None:
    """Draw how many impressions were attractive, and how many examined; u is (2, rows)."""
    n, c = cells.impressions, cells.clicks
    for row in range(n.shape[0]):
        i, j = cells.item[row], cells.cell[row]
        skipped = n[row] - c[row]
        unseen = binomial(skipped, (1.0 - e[j]) * w[i] / (1.0 - w[i] * e[j]), u[0, row])
        attractive[i] += c[row] + unseen
        examined[j] += c[row] + binomial(skipped - unseen, e[j], u[1, row])


class BrowsingClicks(Latent):
    """A browsing model beside clicks: w, and e in the ``shape`` of the cells of a group.

    ``cell`` gives the cell of every shown (pattern, position). Cells are (G, J) for ``possible``,
    which gets impressions, ``anchor``, and ``largest``, which gets both. Elsewhere e is 0.
    """

    items = ("w",)
    steps = 8

    def __init__(
        self,
        data: FoldedClicks,
        options: Options,
        cell: Callable[[Patterns], Ints],
        shape: tuple[int, ...],
        possible: Callable[[Floats], Bools],
        anchor: Callable[[Floats], Bools],
        largest: Callable[[Floats, Floats], float | None],
        of_classes: bool,
        finish: Finish,
    ) -> None:
        super().__init__(data, options, finish)
        self._cell, self._shape, J = cell, (self.G, *shape), int(np.prod(shape))
        self._anchor, self._largest, self._of_classes = anchor, largest, of_classes
        self._every = fold(data, cell, J, self.G, self.group)
        self._last: tuple[FoldedClicks, Cells] = data, self._every
        self._row: Ints | None = None
        self.size = len(self._every.item)
        self._seen = self._every.sums(self._every.impressions)
        self._shown = self._seen[1].reshape(self.G, J)
        self._possible = possible(self._shown)
        self._settled = False
        self._fix(np.zeros((self.G, J), dtype=np.bool_))

    def _fix(self, known: Bools) -> None:
        self.fixed = {"e": (~self._possible | known).reshape(self._shape)}

    def _rows(self, data: Patterns) -> Ints:
        """Where each shown (pattern, position) is among the cells; the same whatever its weight."""
        if self._row is None:
            J = self._every.J
            _, self._row = distinct(data.shown.item * J + self._cell(data), data.I * J)
        return self._row

    def cells(self, data: FoldedClicks) -> Cells:
        """Those of weighted patterns."""
        if data is not self._last[0]:
            assert isinstance(data, Patterns)
            row, n = self._rows(data), len(self._every.item)
            shown, clicks = (sum_by(row, x, n) for x in (data.shown.count, data.shown.clicks))
            self._last = data, self._every._replace(impressions=shown, clicks=clicks)
            self._seen = self._last[1].sums(shown)
        return self._last[1]

    def start(self, data: FoldedClicks) -> Params:
        """One half everywhere."""
        return {"w": np.full(data.I, 0.5), "e": np.where(self.fixed["e"], 0.0, 0.5)}

    def expected(
        self,
        data: FoldedClicks,
        x: Params,
        active: Bools | None = None,
        rng: np.random.Generator | None = None,
    ) -> tuple[Counts, Floats]:
        """Attractive impressions of each item, examined ones of each cell."""
        cells, w, e = self.cells(data), x["w"], np.minimum(x["e"].ravel(), 1.0 - CAP)
        attractive, missing, likelihood = np.zeros(cells.I), np.zeros(cells.I), np.zeros(self.G)
        examined = np.zeros(self.G * cells.J)
        if rng is None:
            active = np.ones(self.G, dtype=np.bool_) if active is None else active
            expect_rows(cells, active, w, e, attractive, missing, examined, likelihood)
        else:
            u = rng.random((2, len(cells.item)))
            complete_rows(cells, w, e, u, attractive, examined)
        seen_i, seen_j = self._seen
        of_cells = Count(examined.reshape(self._shape), seen_j.reshape(self._shape))
        return {"w": Count(attractive, seen_i, missing), "e": of_cells}, likelihood

    def item_evidence(self, data: FoldedClicks, x: Params) -> dict[str, Pair]:
        """Clicks, of expected examinations, which predicts better than what is observed of them."""
        cells = self.cells(data)
        examined, _ = cells.sums(cells.impressions * x["e"].ravel()[cells.cell])
        clicks, _ = cells.sums(cells.clicks)
        return {"w": (clicks, np.maximum(examined, clicks))}

    def log_likelihood(self, data: Patterns, x: Params, active: Bools) -> Floats:
        """ln P(clicks) of each pattern."""
        at = self._every.cell[self._rows(data)]
        return independent(data, x["w"][data.shown.item] * x["e"].ravel()[at])

    def settled(self, x: Params, alone: bool) -> Params:
        """The anchor at the largest value."""
        flat = x["e"].reshape(self.G, -1)
        if (alone and self._settled) or (not alone and not self._of_classes):
            return x
        known = self._anchor(flat) & self._possible
        top = self._largest(flat, self._shown)
        if alone:
            self._settled = True
            self._fix(known)
        if top is None:
            return x
        scale = np.maximum(np.where(known, flat, 0.0).max(axis=1), 1e-12) / top
        e = np.minimum(flat / scale[:, None], top).reshape(self._shape)
        return {"w": np.minimum(x["w"] * scale[self.item_group], 1.0 - CAP), "e": e}


def with_exact_one(e: ParameterEstimate) -> ParameterEstimate:
    """1 where EM stays below it for the sake of its logarithms."""
    exact = e.map(lambda x: np.where(x >= 1.0 - 1.5 * CAP, 1.0, x))
    return replace(exact, observations=e.observations)
