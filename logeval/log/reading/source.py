"""Where the bytes of a log come from: plain, .gz or .zst files, or standard input.

The compression is recognised by the first bytes, not by the name. The checksum and the
progress are of the bytes as stored. A byte order mark is no part of the text. ISA-L reads .gz in
half the time of zlib.
"""

from __future__ import annotations

import hashlib
import io
import struct
import sys
import zlib
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from isal import igzip, igzip_lib

from logeval.errors import LogevalError
from logeval.running.arrays import Bytes
from logeval.storage.tables import Manifest

STDIN = "-"
HEAD = 1 << 16  # bytes by which a format is recognised
MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# what damaged data raise: EOFError for those that are cut short
DAMAGE: tuple[type[Exception], ...] = (  # type: ignore[assignment]
    OSError, EOFError, struct.error, zlib.error, igzip_lib.IsalError,
)  # fmt: skip


class _Counted(io.RawIOBase):
    """A file that counts and hashes what is read from it."""

    def __init__(self, file: IO[bytes], on_read: Callable[[float], None]) -> None:
        self.file, self.on_read = file, on_read
        self.size = 0
        self.sha256 = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        n = int(self.file.readinto(buffer))  # type: ignore[attr-defined]
        self.size += n
        self.sha256.update(memoryview(buffer)[:n])
        self.on_read(n)
        return n


class _Gzip(igzip.IGzipFile):
    def readinto(self, buffer: Any) -> int:
        """Straight into the buffer; that of ``io`` makes bytes first, and copies them."""
        return int(self._buffer.readinto(buffer))


class Source:
    """One log file, read from start to end, decompressed."""

    def __init__(self, path: str | Path, on_read: Callable[[float], None] = lambda n: None) -> None:
        self.path, self.advance = Path(path), on_read
        self.name = "standard input" if str(path) == STDIN else str(path)
        self._raw: Any = _open(path)
        self._buffered = io.BufferedReader(self._raw, 1 << 20)
        head = self._buffered.peek(4)
        self._counted = _Counted(self._buffered, lambda n: self.advance(n))
        self.compression = next((c for m, c in MAGIC.items() if head.startswith(m)), None)
        self._stream: Any = self._counted
        if self.compression == "gzip":
            self._stream = _Gzip(fileobj=self._counted, mode="rb")
        elif self.compression:
            file = pa.PythonFile(self._counted, mode="r")
            self._stream = pa.CompressedInputStream(file, self.compression)
        self._given = 0  # of the head, which is looked at, and then read
        self.table: Any = None  # as a file of columns (``log.tables``), once it was opened so

    @cached_property
    def head(self) -> bytes:
        """The first bytes, but for a byte order mark."""
        first = np.empty(HEAD, np.uint8)
        return first[: self._fill(first)].tobytes().removeprefix(BYTE_ORDER_MARK)

    @property
    def first_lines(self) -> bytes:
        """The whole lines among the first bytes, at least one, even if it goes on."""
        return self.head[: self.head.rfind(b"\n") + 1] or self.head + b"\n"

    def readinto(self, buffer: Bytes) -> int:
        """Fill the buffer; returns the number of bytes, fewer than its size only at the end."""
        ahead = np.frombuffer(self.head, np.uint8)[self._given :][: len(buffer)]
        buffer[: len(ahead)] = ahead
        self._given += len(ahead)
        return len(ahead) + self._fill(buffer[len(ahead) :])

    def _fill(self, buffer: Bytes) -> int:
        n = 0
        while n < len(buffer):
            try:
                read = self._stream.readinto(buffer[n:].data)
            except DAMAGE as error:
                raise LogevalError(
                    f"{self.name}: damaged {self.compression} data before offset "
                    f"{self._counted.size:,} of the file ({error}); get the file again"
                ) from None
            if not read:
                break
            n += read
        return n

    def as_stored(self) -> IO[bytes]:
        """The file as stored, from its start; for a look at one that is read in any order."""
        self._raw.seek(0)
        file: IO[bytes] = self._raw
        return file

    def in_any_order(self) -> IO[bytes]:
        """The file as stored, once it was hashed whole; it is the same one, whatever its path says.

        For what is not read from start to end; it is to tell ``advance`` by itself.
        """
        self._raw.seek(0)
        self._counted.sha256 = hashlib.file_digest(self._raw, "sha256")
        self._counted.size = self._raw.tell()
        file: IO[bytes] = self._raw
        return file

    def fileno(self) -> int:
        """The descriptor of the open file."""
        return int(self._raw.fileno())

    def identity(self) -> Manifest:
        """Name, size and checksum, once all was read."""
        name = self.name if str(self.path) == STDIN else self.path.name
        read = self._counted
        return {"name": name, "bytes": read.size, "sha256": read.sha256.hexdigest()}

    def close(self) -> None:
        """Close the file; standard input stays open."""
        raw = self._buffered.detach()
        if sys.stdin is None or raw is not sys.stdin.buffer:
            raw.close()


def _open(path: str | Path) -> Any:
    if str(path) == STDIN:
        if sys.stdin is None:
            raise LogevalError("standard input: is closed; give it a log, or name a file")
        return sys.stdin.buffer
    try:
        return open(path, "rb", buffering=0)
    except OSError as error:
        raise LogevalError(f"{path}: cannot be read ({error.strerror}); check the path") from None
