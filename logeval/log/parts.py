"""Blocks of a log -> files of the serps table, parsed and written side by side.

The kernel and the Parquet writer release the interpreter lock, so the workers are threads:
one block of whole sessions becomes one file, whatever the number of workers.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from logeval.log import rejects
from logeval.log.scan import COUNTS, PERSONALIZED, Scanner
from logeval.log.serps import serps_table
from logeval.running.arrays import Bytes, Ints
from logeval.storage import files, tables


@dataclass(frozen=True)
class Written:
    """What is left of a block once its SERPs are written."""

    counts: Counter[str]
    bad: Ints
    buf: Bytes

    def rejects(self) -> Iterator[rejects.Reject]:
        """Its lines that are not records; valid until the memory of the block is used again."""
        return rejects.rejects_of(self.bad, self.buf)


def name_by_content(folder: Path) -> None:
    """Add its checksum to the name of every part: ``part-00000-1c291ca3.parquet``.

    The files of two logs that take each other's place then never share a name, unless they are the
    same, and a reader who has checked a file cannot open another one.
    """
    for part in sorted(folder.iterdir()):
        part.rename(part.with_stem(f"{part.stem}-{files.crc32(part)}"))


def write_parts(
    blocks: Iterable[Bytes], fmt: int, next_part: Callable[[], Path], workers: int
) -> Generator[Written, None, None]:
    """Write each block to the next part, and say in their order what was in them.

    Closing the generator waits for what is being written.
    """
    scanners = threading.local()

    def parse_and_write(buf: Bytes, path: Path) -> Written:
        if not hasattr(scanners, "own"):
            scanners.own = Scanner(fmt)
        block = scanners.own.scan(buf)
        tables.write_serps(serps_table(block, has_domains=fmt == PERSONALIZED), path)
        counts = Counter(dict(zip(COUNTS, block.counts.tolist(), strict=True)))
        return Written(counts, block.rejects.copy(), buf)

    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Written]] = deque()
        for buf in blocks:
            waiting.append(pool.submit(parse_and_write, buf, next_part()))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
