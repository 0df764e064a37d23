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
from logeval.log.blocks import session_blocks
from logeval.log.formats import HEAD, TABLE, recognise
from logeval.log.inputs import changed, is_stream
from logeval.log.parts import write_parts
from logeval.log.ranges import ByteRange, byte_ranges, checksums, range_blocks
from logeval.log.scan import FORMATS
from logeval.log.source import Source
from logeval.log.tally import EXAMPLES
from logeval.running.arrays import Bytes
from logeval.running.work import Task, Tick, run_tasks
from logeval.storage import tables

Read = int | tables.Manifest  # CRC-32 of a range, or the identity of a file that was read whole


@dataclass(frozen=True)
class Piece:
    """What a worker gets: a range of a plain file, or a compressed file, and where to write."""

    file: int
    number: int
    path: Path
    fmt: int
    range: ByteRange | None
    block_size: int
    folder: Path

    def work(self) -> Done:
        """Write parts and rejects; what a worker that died has begun, is begun anew."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        parts = (self.folder / f"{i:06d}.parquet" for i in count())
        free: list[Bytes] = []
        read: list[Read] = []
        found, lines = [], 0
        with (
            open(self.folder / rejects.FILE, "w", errors="backslashreplace") as rejects_file,
            closing(
                write_parts(self._blocks(free, read), self.fmt, lambda: next(parts), 1)
            ) as written,
        ):
            for block in written:
                found.append((block.counts, list(islice(block.rejects(), EXAMPLES))))
                for reject in block.rejects():
                    rejects_file.write(reject.row(lines))
                lines += block.counts["lines"]
                free.append(block.buf)
        return Done(self.file, self.number, found, self.folder, read[0])

    def _blocks(self, free: list[Bytes], read: list[Read]) -> Iterator[Bytes]:
        if self.range is not None:
            blocks = range_blocks(self.path, self.range, self.fmt, self.block_size, free)
            read.append((yield from blocks))
            return
        source = Source(self.path)
        try:
            yield from session_blocks(source, self.fmt, self.block_size, free)
            read.append(source.identity())
        finally:
            source.close()


@dataclass(frozen=True)
class Done:
    """What a worker says of its piece: the counts of its blocks, each with its first rejects."""

    file: int
    number: int
    blocks: list[tuple[Counter[str], list[rejects.Reject]]]
    folder: Path
    read: Read

    def parts(self) -> list[Path]:
        """The files that it has written, in order."""
        return sorted(self.folder.glob("*.parquet"))


@dataclass(frozen=True)
class Checksum:
    """A task of its own: SHA-256 of a file cannot be taken range by range.

    It may run on another machine, which may see another file under the path: the checksums of the
    ranges tell.
    """

    file: int
    path: Path
    ranges: list[ByteRange]

    def work(self) -> tuple[int, tuple[tables.Manifest, list[int]]]:
        """The number of the file, its identity, and the checksums of its ranges."""
        return self.file, checksums(self.path, self.ranges)


def recognised(path: str | Path, format: str) -> tuple[str, bool]:
    """The format of a file, and whether it is compressed; raises if no cluster can read it."""
    if is_stream(path):
        raise LogevalError(f"{path}: a cluster cannot read a stream; give its file")
    source = Source(path)
    try:
        head = source.peek(HEAD)
    finally:
        source.close()
    if not head:
        raise LogevalError(f"{path}: is empty; there is nothing to ingest")
    name = format if format != "auto" else recognise(head, str(path))
    if name == TABLE:
        raise LogevalError(f"{path}: tables are ingested here, not on a cluster; no scheduler")
    return name, source.compression is not None


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
        fmt, path = FORMATS.index(format), path.resolve()
        size = path.stat().st_size
        ranges = [] if compressed else byte_ranges(path, fmt, block_size)
        for number, part in enumerate(ranges or [None]):
            folder = staging.resolve() / f"piece-{file}-{number}"
            piece = Piece(file, number, path, fmt, part, block_size, folder)
            tasks.append(Task("ingest", part.bytes(size) if part else size, piece))
        if ranges:
            tasks.append(Task("checksum", size, Checksum(file, path, ranges)))
    found = list(run_tasks(_work, tasks, scheduler=scheduler, unit="bytes", quiet=quiet))
    pieces = [each for each in found if isinstance(each, Done)]
    pieces.sort(key=lambda piece: (piece.file, piece.number))
    checked = dict(each for each in found if not isinstance(each, Done))
    identities = [
        _identity(path, [piece.read for piece in pieces if piece.file == file], checked.get(file))
        for file, path in enumerate(paths)
    ]
    return identities, pieces


def _identity(
    path: Path, read: list[Any], checked: tuple[tables.Manifest, list[int]] | None
) -> tables.Manifest:
    """Of the bytes that the workers have read, if they all have read the same file."""
    identity, crcs = checked or (read[0], read)
    if read != crcs:
        raise changed(path)
    return identity


def _work(task: Piece | Checksum, tick: Tick) -> Any:
    return task.work()
