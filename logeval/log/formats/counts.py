"""counts: rows (query, item, position, impressions, clicks), which a company may share.

They say how often an item was shown and clicked at a position, and nothing of what else was on the
page: enough for the PBM and the models of click-through rates, not for cascades.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from logeval.log.columns.frame import Frame
from logeval.log.columns.opening import open_table
from logeval.log.formats.format import Format, Job, Read, Reading
from logeval.log.layouts import recognised
from logeval.log.reading.source import Source
from logeval.log.rows.counted import ACCOUNTS, read_counts


@dataclass(frozen=True, kw_only=True)
class Counts(Format):
    """Impressions and clicks."""

    columns: bool = True
    together: bool = True
    holds: ClassVar[str] = "counts"
    accounts: ClassVar[Mapping[str, str]] = ACCOUNTS

    def likeness(self, source: Source | Frame, columns: Mapping[str, str]) -> float:
        """Less than a log whose lines are mostly valid."""
        layout = recognised(source, columns)
        return 0.5 if layout is not None and layout.kind == "counts" else 0.0

    def read(self, reading: Reading) -> Iterator[Job | Read]:
        """All files together."""
        return read_counts(reading, list(map(open_table, reading.sources)))


FORMAT = Counts(name="counts")
