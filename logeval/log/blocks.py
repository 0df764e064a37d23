"""A stream of bytes -> blocks of whole sessions, in constant memory.

Blocks are cut where a session ends, so they can be parsed apart, and where they are cut
depends only on the bytes and the block size, never on the number of workers.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logeval.arrays import Bytes
from logeval.errors import LogevalError
from logeval.log.fields import MAX_LINE
from logeval.log.scan import last_session
from logeval.log.source import Source

BLOCK_SIZE = 24 << 20  # about 100,000 SERPs of the Kaggle log, one row group
MAX_SESSION = 64 << 20


def whole_lines(source: Source, size: int) -> Iterator[bytes]:
    """The bytes in pieces that end with a newline; of an overlong line only the head is kept.

    MAX_LINE + 1 bytes of it are: enough for the parser to see that it is too long.
    """
    tail = b""
    overlong = False
    while chunk := source.read(size):
        if overlong:
            newline = chunk.find(b"\n")
            if newline < 0:
                continue
            chunk, overlong = chunk[newline:], False
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield tail + chunk[:cut]
            tail = chunk[cut:]
        else:
            tail += chunk
        if len(tail) > MAX_LINE:
            tail, overlong = tail[: MAX_LINE + 1], True
    if tail:
        yield tail + b"\n"


def session_blocks(source: Source, fmt: int, size: int = BLOCK_SIZE) -> Iterator[Bytes]:
    """Blocks of whole sessions, each ending with a newline."""
    data = b""
    for lines in whole_lines(source, size):
        if data:  # more lines follow: its last session may go on in them
            cut = last_session(np.frombuffer(data, np.uint8), fmt)
            if cut:
                yield np.frombuffer(data, np.uint8, cut)
            elif len(data) > MAX_SESSION:
                raise LogevalError(
                    f"{source.name}: a session of over {MAX_SESSION >> 20} MiB; sessions are runs "
                    "of lines with the same SessionID; check the file and --format"
                )
            data = data[cut:]
        data += lines
    if data:
        yield np.frombuffer(data, np.uint8)
