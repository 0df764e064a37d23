"""raw log -> serps on a Dask cluster: a range of a plain file, or a compressed file, is one task.

The parts are then numbered, and the lines counted, as if one process had read everything.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

from logeval.errors import LogevalError
from logeval.log import rejects
from logeval.log.formats.registry import format_of, line_format
from logeval.log.ingest import MAX_POSITIONS, Ingest
from logeval.log.inputs import changed, is_stream
from logeval.log.lines import blocks
from logeval.log.lines.line_format import LineFormat
from logeval.log.reading.parts import write_parts
from logeval.log.reading.source import Source
from logeval.running.arrays import Bytes
from logeval.running.work import Task, Tick, run_tasks
from logeval.storage import tables

Hashed = int | tables.Manifest  # CRC-32 of a range, or the identity of a file that was read whole


@dataclass(frozen=True)
class Piece:
    """What a worker gets: a range of a plain file, or a compressed file, and where to write."""

    file: int
    path: Path
    format: str
    range: blocks.ByteRange | None
    block_size: int
    positions: int
    folder: Path

    def work(self) -> Done:
        """Write parts and rejects; what a worker that died has begun, is begun anew."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        parts = (self.folder / f"{i:06d}.parquet" for i in count())
        format, hashed = line_format(self.format), list[Hashed]()
        jobs = format.jobs(self._blocks(format.kernels.ends, hashed), self.positions)
        found, lines = [], 0
        with (
            rejects.writing(self.folder) as rejects_file,
            closing(write_parts(jobs, lambda: next(parts), 1)) as written,
        ):
            for block in written:
                found.append((block.counts, list(islice(block.rejects(), rejects.EXAMPLES))))
                for reject in block.rejects():
                    rejects_file.write(reject.row(lines))
                lines += block.counts["lines"]
        return Done(self, found, hashed[0])

    def _blocks(self, ends: blocks.Ends, hashed: list[Hashed]) -> Iterator[Bytes]:
        if self.range is not None:
            crc32 = yield from blocks.range_blocks(self.path, self.range, ends, self.block_size)
            hashed.append(crc32)
            return
        with closing(Source(self.path)) as source:
            yield from blocks.session_blocks(source, ends, self.block_size)
            hashed.append(source.identity())


@dataclass(frozen=True)
class Done:
    """What a worker says of its piece: the counts of its blocks, each with its first rejects."""

    piece: Piece
    blocks: list[tuple[Counter[str], list[rejects.Reject]]]
    hashed: Hashed


def _checked(file: int, path: Path, ranges: list[blocks.ByteRange]) -> tuple[int, Any]:
    """The number of a file, its identity, and the checksums of its ranges.

    A task of its own: SHA-256 of a file cannot be taken range by range. It may run on another
    machine, which may see another file under the path: the checksums of the ranges tell.
    """
    return file, blocks.checksums(path, ranges)


def _recognised(path: Path, format: str) -> tuple[LineFormat, bool]:
    """The format of a file, and whether it is compressed; raises if no cluster can read it."""
    if is_stream(path):
        raise LogevalError(f"{path}: a cluster cannot read a stream; give its file")
    with closing(Source(path)) as source:
        found = format_of(source, format)
    if not isinstance(found, LineFormat):
        raise LogevalError(f"{path}: tables are ingested here, not on a cluster; no scheduler")
    return found, source.compression is not None


def ingest_pieces(
    asked: Ingest, paths: Sequence[Path], staging: Path
) -> tuple[list[tables.Manifest], list[Done]]:
    """Have the workers write below ``staging``; the files' identities, and the pieces in order."""
    tasks: list[Task] = []
    block_size = asked.block_size or blocks.BLOCK_SIZE
    positions = asked.positions or MAX_POSITIONS
    for file, (kind, compressed) in enumerate([_recognised(path, asked.format) for path in paths]):
        path = paths[file].resolve()
        size = path.stat().st_size
        ranges = [] if compressed else blocks.byte_ranges(path, kind.kernels.ends, block_size)
        for number, part in enumerate(ranges or [None]):
            folder = staging.resolve() / f"piece-{file:06d}-{number:06d}"
            piece = Piece(file, path, kind.name, part, block_size, positions, folder)
            tasks.append(Task("ingest", part.bytes(size) if part else size, piece.work))
        if ranges:
            tasks.append(Task("checksum", size, partial(_checked, file, path, ranges)))
    done = run_tasks(_work, tasks, scheduler=asked.scheduler, unit="bytes", quiet=asked.quiet)
    found = list(done)
    pieces = [each for each in found if isinstance(each, Done)]
    pieces.sort(key=lambda done: done.piece.folder)
    checked = dict(each for each in found if not isinstance(each, Done))
    identities = []
    for file, path in enumerate(paths):
        hashed: list[Any] = [done.hashed for done in pieces if done.piece.file == file]
        identity, crcs = checked.get(file, (hashed[0], hashed))
        if hashed != crcs:  # not all workers have seen the same file
            raise changed(path)
        identities.append(identity)
    return identities, pieces


def _work(task: Callable[[], Any], tick: Tick) -> Any:
    return task()
