"""Zstandard with checksums: every write becomes a frame that vouches for its content.

Arrow compresses without a checksum, and flipped bits then read as other data. The format (RFC 8878,
sections 3.1.1 and 3.1.1.1.1) has room for one: a flag in the header of a frame says that the low
four bytes of the XXH64 of its content follow it. Decompressors check it, Arrow's as well.
"""

from __future__ import annotations

from typing import IO

import numpy as np
import pyarrow as pa

from logeval.running.arrays import Bytes
from logeval.running.kernels import njit

CHECKSUM_FLAG = 0b100  # of the frame header descriptor, the byte after the magic number
# XXH64: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
P1, P2, P3, P4, P5 = (
    np.uint64(p)
    for p in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)


class ZstdWriter:
    """A file to write to: each ``write`` is compressed as a frame of its own."""

    def __init__(self, raw: IO[bytes], level: int = 1) -> None:
        self._raw, self._codec = raw, pa.Codec("zstd", level)

    def write(self, data: bytes) -> None:
        """Compress, and append."""
        self._raw.write(frame(data, self._codec))


def frame(data: bytes, codec: pa.Codec) -> bytes:
    """One compressed frame with the checksum of its content."""
    compressed = bytearray(codec.compress(data, asbytes=True))
    compressed[4] |= CHECKSUM_FLAG
    checksum = int(xxh64(np.frombuffer(data, np.uint8))) & 0xFFFFFFFF
    return bytes(compressed) + checksum.to_bytes(4, "little")


@njit(cache=True, nogil=True)
def _rotated(x, n):
    return (x << np.uint64(n)) | (x >> np.uint64(64 - n))


@njit(cache=True, nogil=True)
def _round(lane, word):
    return _rotated(lane + word * P2, 31) * P1


@njit(cache=True, nogil=True)
def _merged(x, lane):
    return (x ^ _round(np.uint64(0), lane)) * P1 + P4


@njit(cache=True, nogil=True)
def _word(data, i, size):
    word = np.uint64(0)
    for j in range(size):
        word |= np.uint64(data[i + j]) << np.uint64(8 * j)
    return word


@njit(cache=True, nogil=True)
def _xxh64(data, words):
    n = len(data)
    i = 0
    if n >= 32:
        a, b, c, d = P1 + P2, P2, np.uint64(0), np.uint64(0) - P1
        for w in range(0, 4 * (n // 32), 4):
            a = _round(a, words[w])
            b = _round(b, words[w + 1])
            c = _round(c, words[w + 2])
            d = _round(d, words[w + 3])
        i = 32 * (n // 32)
        x = _rotated(a, 1) + _rotated(b, 7) + _rotated(c, 12) + _rotated(d, 18)
        x = _merged(_merged(_merged(_merged(x, a), b), c), d)
    else:
        x = P5
    x += np.uint64(n)
    while i + 8 <= n:
        x = _rotated(x ^ _round(np.uint64(0), _word(data, i, 8)), 27) * P1 + P4
        i += 8
    if i + 4 <= n:
        x = _rotated(x ^ (_word(data, i, 4) * P1), 23) * P2 + P3
        i += 4
    while i < n:
        x = _rotated(x ^ (np.uint64(data[i]) * P5), 11) * P1
        i += 1
    x = (x ^ (x >> np.uint64(33))) * P2
    x = (x ^ (x >> np.uint64(29))) * P3
    return x ^ (x >> np.uint64(32))


def xxh64(data: Bytes) -> np.uint64:
    """XXH64 of some bytes, with seed 0."""
    return _xxh64(data, data[: len(data) // 8 * 8].view("<u8"))
