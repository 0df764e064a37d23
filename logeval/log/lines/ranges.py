"""A plain file -> ranges of bytes that can be cut into blocks apart from each other.

Read from its start, a file is cut after every ``size`` bytes where the last session begins
(``blocks.session_blocks``). That place can be found by looking back from there, so a range of
reads can be made by itself, and gives the same blocks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from isal import isal_zlib

from logeval.log.lines.blocks import BLOCK_SIZE, Ends, session_blocks
from logeval.log.lines.fields import NEWLINE
from logeval.log.reading.source import BYTE_ORDER_MARK
from logeval.running.arrays import Bytes
from logeval.storage.tables import Manifest

CHUNK = 8 << 20
RANGE_BLOCKS = 16  # reads of a range: one to two seconds of work


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
        start = len(BYTE_ORDER_MARK) if file.read(3) == BYTE_ORDER_MARK.tobytes() else 0
        places = [(start, start)]
        for position in range(start, path.stat().st_size, RANGE_BLOCKS * size)[1:]:
            file.seek(position - size)
            window = np.fromfile(file, np.uint8, size)
            if cut := _last_session(window, ends):
                places.append((position - size + cut, position))
    places = places[: max(len(places) - 1, 1)]
    stops = [*(position for _, position in places[1:]), None]
    return [ByteRange(*place, stop) for place, stop in zip(places, stops, strict=True)]


def _last_session(window: Bytes, ends: Ends) -> int:
    """Where the last session begins in bytes that may begin within a line; 0 if nowhere."""
    lines = int(np.argmax(window == NEWLINE)) + 1
    cut = ends(window[lines:])[0]
    return cut and lines + cut


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
