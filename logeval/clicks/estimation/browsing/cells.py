"""Impressions and clicks by (item, cell): all that the likelihood of browsing users needs.

A cell is a position (PBM) or a position and previous click (UBM).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from logeval.clicks.estimation.patterns import FoldedClicks, Patterns
from logeval.running.arrays import Floats, Ints, distinct, sum_by


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

    def by_group(self, size: int) -> Iterator[tuple[int, list[slice]]]:
        """Each group and its rows, in chunks of whole items of about ``size`` rows."""
        group = self.cell // self.J
        new = np.flatnonzero(group[1:] != group[:-1]) + 1
        ends = np.append(np.flatnonzero(self.item[1:] != self.item[:-1]) + 1, len(group))
        bounds = [0, *new.tolist(), len(group)]
        for first, end in itertools.pairwise(bounds):
            if first == end:
                continue
            inside = np.unique(ends[np.searchsorted(ends, np.arange(first + size, end, size))])
            cuts = [first, *inside[inside < end].tolist(), end]
            yield int(group[first]), list(itertools.starmap(slice, itertools.pairwise(cuts)))

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
