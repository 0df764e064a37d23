"""A stream of bytes -> blocks of whole sessions, in constant memory.

Blocks are cut where a session ends, so they can be parsed apart, and where they are cut
depends only on the bytes and the block size, never on the number of workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np

from logeval.errors import LogevalError
from logeval.log.lines.fields import MAX_LINE, NEWLINE
from logeval.running.arrays import Bytes

BLOCK_SIZE = 12 << 20  # about 50,000 SERPs of the Kaggle log, one row group
MAX_SESSION = 64 << 20

Ends = Callable[[Bytes], tuple[int, int]]  # a kernel, see ``scan.line_kernels``


class Stream(Protocol):
    """What blocks are read from: a ``Source``, or a range of a file."""

    name: str

    def readinto(self, buffer: Bytes) -> int:
        """Fill the buffer; returns the number of bytes, fewer than its size only at the end."""


def session_blocks(
    source: Stream,
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


def _fill(source: Stream, buffer: Bytes, rest: Bytes) -> int:
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
