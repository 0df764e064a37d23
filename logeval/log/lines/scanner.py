"""Blocks of whole sessions -> arrays of SERPs, in memory that is used again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from logeval.log.lines.fields import MAX_ITEMS, REC_SIZE
from logeval.log.lines.scan import COUNTS, N_REJECTED, S_ITEMS
from logeval.running.arrays import Bytes, Ints

if TYPE_CHECKING:
    from logeval.log.lines.line_format import LineFormat


@dataclass(frozen=True)
class Scanned:
    """SERPs of a block as arrays; item arrays are flat, SERP s has serps[S_ITEMS, s:s+2]."""

    serps: Ints  # (9, n + 1)
    items: Ints
    domains: Ints
    clicks: Ints
    click_times: Ints  # -1: no click
    rejects: Ints  # (4, m): line in the block from 0, start, end, reason
    counts: Ints


class Scanner:
    """Parses blocks of whole sessions, one after the other, into the same memory.

    What ``scan`` returns is valid until the next call: fresh memory for every block would cost
    as much time as the parsing.
    """

    def __init__(self, format: LineFormat) -> None:
        self._format = format
        self._size = -1
        self._rec = np.empty(REC_SIZE, np.int64)

    def scan(self, buf: Bytes) -> Scanned:
        """Parse a block that ends with a newline."""
        if len(buf) > self._size:
            self._allocate(len(buf) + len(buf) // 4)
        counts = np.zeros(len(COUNTS), np.int64)
        arrays = (self.serps, self.items, self.domains, self.clicks, self.click_times)
        scan = self._format.kernels.scan
        n = scan(buf, self._rec, *arrays, self.late, self.rejects, counts)
        m = self.serps[S_ITEMS, n]
        return Scanned(
            self.serps[:, : n + 1],
            self.items[:m],
            self.domains[:m],
            self.clicks[:m],
            self.click_times[:m],
            self.rejects[:, : counts[N_REJECTED]],
            counts,
        )

    def _allocate(self, size: int) -> None:
        """Room for whatever ``size`` bytes can hold; what is not used takes no memory."""
        self._size = size
        queries = size // len(self._format.shortest_query) + 1
        clicks = size // len(self._format.shortest_click) + 1
        room = size // 2 + MAX_ITEMS + 1  # a list that turns out too long is written, then rejected
        self.serps = np.empty((9, queries + 1), np.int64)
        self.items, self.domains, self.click_times = (np.empty(room, np.int64) for _ in range(3))
        self.clicks = np.empty(room, np.int32)
        self.late = np.empty((3, clicks), np.int64)
        self.rejects = np.empty((4, size + 1), np.int32)
