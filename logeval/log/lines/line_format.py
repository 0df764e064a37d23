"""A format of lines: one record each, in runs of lines that are sessions.

Its files are read as one stream of bytes, cut into blocks of whole sessions, and a block is what a
worker parses, so they need no end, and a cluster can share them out.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from logeval.log import rejects
from logeval.log.formats.format import LOG, Format, Job, Read, Reading
from logeval.log.lines.blocks import session_blocks
from logeval.log.lines.scan import COUNTS, LINES, N_REJECTED, Kernels, line_kernels
from logeval.log.lines.scanner import Scanner
from logeval.log.reading.source import Source
from logeval.running.arrays import Bytes


@dataclass(frozen=True, kw_only=True)
class LineFormat(Format):
    """A format by its parser of lines, a kernel as ``lines.fields`` describes it."""

    kind: ClassVar[str] = LOG
    parse: Any
    domains: bool = False  # whether there is one beside every item
    shortest_query: bytes  # lines: what of them a block can hold, there is room for
    shortest_click: bytes

    @cached_property
    def kernels(self) -> Kernels:
        """What is compiled for this format, when it is first needed."""
        return line_kernels(self.parse)

    def likeness(self, source: Source) -> float:
        """The share of the first lines that are valid, if it is over a half."""
        counts = Scanner(self).scan(np.frombuffer(bytearray(source.first_lines), np.uint8))
        share = 1 - counts[N_REJECTED] / counts[LINES]
        return float(share) if share > 0.5 else 0.0

    def read(self, reading: Reading) -> Iterator[Job]:
        """The blocks of a file."""
        (source,) = reading.sources
        free: list[Bytes] = []
        return self.jobs(session_blocks(source, self.kernels.ends, reading.block_size, free), free)

    def jobs(self, blocks: Iterable[Bytes], free: list[Bytes]) -> Iterator[Job]:
        """Parse each block; those that are done with go to ``free``."""
        scanners = threading.local()
        for block in blocks:
            yield partial(self._parsed, block, scanners, free)

    def _parsed(
        self, buf: Bytes, scanners: threading.local, free: list[Bytes]
    ) -> tuple[pa.Table, Read]:
        if not hasattr(scanners, "own"):
            scanners.own = Scanner(self)
        counts = scanners.own.scan(buf).tolist()
        read = Read(
            Counter(dict(zip(COUNTS, counts, strict=True))),
            rejects=partial(rejects.rejects_of, scanners.own.rejects(), buf),
            done=partial(free.append, buf),
        )
        return scanners.own.table(), read
