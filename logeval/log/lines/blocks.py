"""A stream of bytes -> blocks of whole sessions, in constant memory.

Blocks are cut where a session ends, so they can be parsed apart, and where they are cut
depends only on the bytes and the block size, never on the number of workers.

A plain file can also be cut into ranges of bytes, for workers that read apart from each other. Read
from its start, a file is cut after every ``size`` bytes where the last session begins. That place
can be found by looking back from there, so a range of reads gives the same blocks by itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from isal import isal_zlib

from logeval.errors import LogevalError
from logeval.log.lines.fields import MAX_LINE, NEWLINE
from logeval.log.reading.source import BYTE_ORDER_MARK, Source
from logeval.running.arrays import Bytes
from logeval.storage.tables import Manifest

BLOCK_SIZE = 12 << 20  # about 50,000 SERPs of the Kaggle log, one row group
MAX_SESSION = 64 << 20
RANGE_BLOCKS = 16  # reads of a range: one to two seconds of work
CHUNK = 8 << 20

Ends = Callable[[Bytes], tuple[int, int]]  # a kernel, see ``scan.line_kernels``


def session_blocks(
    source: Source | _Section,
    ends: Ends,
    size: int = BLOCK_SIZE,
    rest: Bytes | None = None,
    to_end: bool = True,
) -> Iterator[Bytes]:
    """Blocks of whole sessions, each ending with a newline.

    ``rest`` was read before the first bytes of ``source``; unless ``to_end``, what follows the last
    block is left out, to be the rest of the next range.
    """
    # after the last block: its last session, the start of a line
    rest = np.empty(0, np.uint8) if rest is None else rest
    held = np.empty(0, np.uint8)  # the block before; the last one takes the rest with it
    while True:
        buffer = np.empty(len(rest) + size, np.uint8)
        n = _fill(source, buffer, rest)
        if n == len(rest):
            break
        cut, record = ends(buffer[:n])
        if not record:  # no session at all: cut at a line
            cut = buffer[:n].tobytes().rfind(b"\n") + 1
        rest = buffer[cut:n].copy()
        if cut:
            if len(held):
                yield held
            held = buffer[:cut]
        elif n > MAX_SESSION:
            raise _too_long(source.name, n - record)
    if not to_end:
        yield held
        return
    if len(rest) and rest[-1] != NEWLINE:
        rest = np.append(rest, np.uint8(NEWLINE))
    if len(held) or len(rest):
        yield np.concatenate([held, rest])


def _too_long(name: str, invalid: int) -> LogevalError:
    """One session fills the block, or ``invalid`` bytes at its end hide whether it goes on."""
    size = f"over {MAX_SESSION >> 20} MiB"
    if invalid > MAX_SESSION // 2:
        return LogevalError(
            f"{name}: a session is followed by {invalid >> 20} MiB of lines that are not records; "
            "check the file and the format"
        )
    return LogevalError(
        f"{name}: a session of {size}; sessions are runs of lines with the same SessionID; check "
        "the file and the format"
    )


def _fill(source: Source | _Section, buffer: Bytes, rest: Bytes) -> int:
    """Put the rest and the next bytes into the buffer; returns how many there are now.

    Of an overlong line only the head is kept, more than MAX_LINE bytes: enough for the parser
    to see that it is too long.
    """
    start = len(rest)
    buffer[:start] = rest
    n = source.readinto(buffer[start:])
    begun = start - (rest.tobytes().rfind(b"\n") + 1)  # bytes of the line that goes on
    if begun > MAX_LINE:
        while n:
            newline = buffer[start : start + n].tobytes().find(b"\n")
            if newline >= 0:
                n -= newline
                buffer[start : start + n] = buffer[start + newline : start + newline + n].copy()
                break
            n = source.readinto(buffer[start:])
    return start + n


@dataclass(frozen=True)
class ByteRange:
    """The blocks that begin at ``begin`` and end at the last session before ``end``.

    The bytes from ``begin`` to ``position`` were read last by the range before; ``end`` is None for
    the last range, which goes on to the end of the file.
    """

    begin: int
    position: int
    end: int | None

    def bytes(self, size: int) -> int:
        """How much of a file of this size is read as new."""
        return (size if self.end is None else self.end) - self.position


def byte_ranges(path: Path, ends: Ends, size: int = BLOCK_SIZE) -> list[ByteRange]:
    """The ranges of a plain file, each of some RANGE_BLOCKS blocks.

    Where no session begins between two reads, there is no place to cut, and the range goes on. The
    last range holds another such place: the end of the file goes with the block before it, which
    must be of the same range.
    """
    with open(path, "rb") as file:
        start = len(BYTE_ORDER_MARK) if file.read(3) == BYTE_ORDER_MARK else 0
        places = [(start, start)]
        for position in range(start, path.stat().st_size, RANGE_BLOCKS * size)[1:]:
            file.seek(position - size)
            window = np.fromfile(file, np.uint8, size)
            lines = int(np.argmax(window == NEWLINE)) + 1  # it may begin within one
            if cut := ends(window[lines:])[0]:
                places.append((position - size + lines + cut, position))
    places = places[: max(len(places) - 1, 1)]
    stops = [*(position for _, position in places[1:]), None]
    return [ByteRange(*place, stop) for place, stop in zip(places, stops, strict=True)]


class _Section:
    """The bytes of a plain file from ``begin`` to ``end``, as a source of blocks."""

    def __init__(self, path: Path, file: IO[bytes], begin: int, end: int | None) -> None:
        self.name, self.crc32, self._file = str(path), 0, file
        self._left = (path.stat().st_size if end is None else end) - begin
        file.seek(begin)

    def readinto(self, buffer: Bytes) -> int:
        """Fill the buffer; returns the number of bytes, fewer than its size only at the end."""
        n: int = self._file.readinto(buffer[: self._left].data)  # type: ignore[attr-defined]
        self._left -= n
        self.crc32 = isal_zlib.crc32(buffer[:n].data, self.crc32)
        return n


def range_blocks(
    path: Path, part: ByteRange, ends: Ends, size: int = BLOCK_SIZE
) -> Generator[Bytes, None, int]:
    """The blocks of a range, as ``session_blocks`` of the whole file has them.

    Returns the CRC-32 of the bytes that were read, from ``begin`` to ``end``.
    """
    with open(path, "rb") as file:
        section = _Section(path, file, part.begin, part.end)
        rest = np.empty(part.position - part.begin, np.uint8)
        section.readinto(rest)
        yield from session_blocks(section, ends, size, rest, to_end=part.end is None)
        return section.crc32


def checksums(path: Path, parts: Sequence[ByteRange]) -> tuple[Manifest, list[int]]:
    """The identity of a file, and the CRC-32 of each range of these very bytes."""
    whole, crcs, size, first = hashlib.sha256(), [0] * len(parts), 0, 0
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            whole.update(chunk)
            for i in range(first, len(parts)):
                begin, end = parts[i].begin - size, parts[i].end
                if begin >= len(chunk):
                    break
                inside = memoryview(chunk)[max(begin, 0) : None if end is None else end - size]
                crcs[i] = isal_zlib.crc32(inside, crcs[i])
                if end is not None and end - size <= len(chunk):
                    first = i + 1  # it ends here
            size += len(chunk)
    return {"name": path.name, "bytes": size, "sha256": whole.hexdigest()}, crcs
