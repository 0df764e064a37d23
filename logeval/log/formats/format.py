"""What a log format is: the record in which everything else looks it up.

A format says how it is told from others, how its files become SERPs, what its ids mean, and how
``generate`` writes it. Adding one is a file with its ``Format``, and a line in
``log/formats/registry.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from logeval.log.lines.fields import MAX_ITEMS
from logeval.log.reading.source import Source
from logeval.log.rejects import Reject
from logeval.log.tables.frame import Frame
from logeval.running.arrays import Ints

if TYPE_CHECKING:
    from logeval.synthetic.sessions import Sessions

LOG, TABLE = "log", "table"  # kinds of formats


@dataclass(frozen=True)
class Reading:
    """What is to be read, and how: one file, or all files of a format that has them together."""

    sources: Sequence[Source | Frame]
    block_size: int  # bytes that a worker takes at once
    columns: Mapping[str, str] = field(default_factory=dict)  # our name -> the file's
    folder: Path = Path()  # where the table is made: names go there, and what is in between
    workers: int = 1
    positions: int = MAX_ITEMS  # of a list that are kept
    most: int | None = None  # rows of a file that are read, for a look at it
    actions: Sequence[str] = ("click",)  # that count as clicks
    views: Sequence[str] = ()  # that say what was shown
    rewards: Sequence[str] = ()  # that are conversions
    applications: Sequence[str] = ()  # whose records are read; none: of all
    apart: bool = False  # whether the last source has clicks, and the others do not
    say: Callable[[str], None] = lambda text: None
    note: Callable[[str], None] = lambda text: None  # what is to be known of the log
    advance: Callable[[float], None] = lambda n: None
    size: float = 0.0  # of all sources, as progress counts it


@dataclass(frozen=True)
class Read:
    """What was read for one table of SERPs: how much was kept, dropped and rejected, and why.

    ``counts`` are added up in the manifest. Of those of a file, ``rejected`` may be no more of
    ``lines`` than the user allows.
    """

    counts: Counter[str]
    rejects: Callable[[], Iterable[Reject]] = tuple
    file: int = 0  # which of the sources it is of


Job = Callable[[], tuple[pa.Table, Read]]  # in the schema of ``holds``; done by a free worker
# of a batch of synthetic sessions: query_id and region_id per SERP, the number of the first session
Writer = Callable[["Sessions", Ints, Ints, int], bytes]


@dataclass(frozen=True, kw_only=True)
class Format(ABC):
    """A format by its name.

    The files of a LOG are streams of bytes, read once, and may grow meanwhile; those of a TABLE are
    read in any order, and must stay as they are.
    """

    name: str
    kind: ClassVar[str] = TABLE
    columns: bool = False  # whether users may say what its columns are called
    actions: bool = False  # whether users may say which actions are clicks
    holds: str = "serps"  # the table that is made of it
    unit: ClassVar[str] = "rows"  # what its files hold
    accounts: Mapping[str, str] = field(default_factory=dict)  # counts that add up, in words
    together: bool = False  # whether its files are one log only together
    regions: bool = False  # whether a query is a QueryID in a region
    tests: bool = False  # whether there are test records, whose clicks are withheld
    writer: Writer | None = None

    @abstractmethod
    def likeness(self, source: Source | Frame, columns: Mapping[str, str]) -> float:
        """How much a file looks like this format by its first bytes: from 0, not at all, to 1.

        ``columns`` are those that the user has named.
        """

    @abstractmethod
    def read(self, reading: Reading) -> Iterator[Job | Read]:
        """Tables of SERPs in the order of the log, each made by a job of its own.

        What was counted before the first table is said by itself.
        """
