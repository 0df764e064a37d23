"""raw log -> serps on a Dask cluster: a range of a plain file, or a compressed file, is one task.

The parts are then numbered, and the lines counted, as if one process had read everything.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

from logeval.errors import LogevalError
from logeval.log import rejects
from logeval.log.formats.registry import format_of, line_format
from logeval.log.inputs import identity, is_stream
from logeval.log.lines.blocks import Ends, session_blocks
from logeval.log.lines.line_format import LineFormat
from logeval.log.lines.ranges import ByteRange, byte_ranges, range_blocks
from logeval.log.reading.parts import write_parts
from logeval.log.reading.source import Source
from logeval.log.tally import EXAMPLES
from logeval.running.arrays import Bytes
from logeval.running.work import Task, Tick, run_tasks
from logeval.storage import tables


@dataclass(frozen=True)
class Piece:
    """What a worker gets: a range of a plain file, or a compressed file, and where to write."""

    file: int
    number: int
    path: Path
    format: str
    range: ByteRange | None
    block_size: int
    folder: Path

    def work(self) -> Done:
        """Write parts and rejects; what a worker that died has begun, is begun anew."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        parts = (self.folder / f"{i:06d}.parquet" for i in count())
        format, free = line_format(self.format), list[Bytes]()
        jobs = format.jobs(self._blocks(format.kernels.ends, free), free)
        found, lines = [], 0
        with (
            open(self.folder / rejects.FILE, "w", errors="backslashreplace") as rejects_file,
            closing(write_parts(jobs, lambda: next(parts), 1)) as written,
        ):
            for block in written:
                found.append((block.counts, list(islice(block.rejects(), EXAMPLES))))
                for reject in block.rejects():
                    rejects_file.write(reject.row(lines))
                lines += block.counts["lines"]
                block.done()
        return Done(self.file, self.number, found, self.folder)

    def _blocks(self, ends: Ends, free: list[Bytes]) -> Iterator[Bytes]:
        if self.range is not None:
            yield from range_blocks(self.path, self.range, ends, self.block_size, free)
            return
        with closing(Source(self.path)) as source:
            yield from session_blocks(source, ends, self.block_size, free)


@dataclass(frozen=True)
class Done:
    """What a worker says of its piece: the counts of its blocks, each with its first rejects."""

    file: int
    number: int
    blocks: list[tuple[Counter[str], list[rejects.Reject]]]
    folder: Path

    def parts(self) -> list[Path]:
        """The files that it has written, in order."""
        return sorted(self.folder.glob("*.parquet"))


@dataclass(frozen=True)
class Checksum:
    """A task of its own: SHA-256 of a file cannot be taken range by range."""

    file: int
    path: Path

    def work(self) -> tuple[int, tables.Manifest]:
        """The number of the file and its identity."""
        return self.file, identity(self.path)


def recognised(path: str | Path, format: str) -> tuple[str, bool]:
    """The format of a file, and whether it is compressed; raises if no cluster can read it."""
    if is_stream(path):
        raise LogevalError(f"{path}: a cluster cannot read a stream; give its file")
    with closing(Source(path)) as source:
        found = format_of(source, format)
    if not isinstance(found, LineFormat):
        raise LogevalError(f"{path}: tables are ingested here, not on a cluster; no scheduler")
    return found.name, source.compression is not None


def ingest_pieces(
    paths: Sequence[Path],
    kinds: Sequence[tuple[str, bool]],
    staging: Path,
    *,
    scheduler: str,
    block_size: int,
    quiet: bool,
) -> tuple[list[tables.Manifest], list[Done]]:
    """Have the workers write below ``staging``; the files' identities, and the pieces in order.

    ``kinds`` are what ``recognised`` says of the files.
    """
    tasks: list[Task] = []
    for file, (path, (format, compressed)) in enumerate(zip(paths, kinds, strict=True)):
        path, ends = path.resolve(), line_format(format).kernels.ends
        size = path.stat().st_size
        ranges = [None] if compressed else byte_ranges(path, ends, block_size)
        for number, part in enumerate(ranges):
            folder = staging.resolve() / f"piece-{file}-{number}"
            piece = Piece(file, number, path, format, part, block_size, folder)
            tasks.append(Task("ingest", part.bytes(size) if part else size, piece))
        tasks.append(Task("checksum", size, Checksum(file, path)))
    found = list(run_tasks(_work, tasks, scheduler=scheduler, unit="bytes", quiet=quiet))
    pieces = [each for each in found if isinstance(each, Done)]
    identities = dict(each for each in found if not isinstance(each, Done))
    return (
        [identities[file] for file in range(len(paths))],
        sorted(pieces, key=lambda piece: (piece.file, piece.number)),
    )


def _work(task: Piece | Checksum, tick: Tick) -> Any:
    return task.work()
