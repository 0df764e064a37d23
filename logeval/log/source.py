"""Where the bytes of a log come from: plain, .gz or .zst files, or standard input.

The compression is recognised by the first bytes, not by the name. The checksum and the
progress are of the bytes as stored.
"""

from __future__ import annotations

import hashlib
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pyarrow as pa

from logeval.errors import LogevalError
from logeval.tables import Manifest

STDIN = "-"
MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


class _Counted(io.RawIOBase):
    """A file that counts and hashes what is read from it."""

    def __init__(self, file: IO[bytes], on_read: Callable[[int], None]) -> None:
        self.file, self.on_read = file, on_read
        self.size = 0
        self.sha256 = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size)
        self.size += len(data)
        self.sha256.update(data)
        self.on_read(len(data))
        return data


class Source:
    """One log file, read from start to end, decompressed."""

    def __init__(self, path: str | Path, on_read: Callable[[int], None] = lambda n: None) -> None:
        self.name = "standard input" if str(path) == STDIN else str(path)
        self._raw: IO[bytes] = sys.stdin.buffer if str(path) == STDIN else _open(path)
        buffered = io.BufferedReader(self._raw, 1 << 20)  # type: ignore[arg-type]
        head = buffered.peek(4)
        self._counted = _Counted(buffered, on_read)
        self.compression = next((c for m, c in MAGIC.items() if head.startswith(m)), None)
        self._ahead = b""  # read by peek, not yet by read
        self._stream: pa.NativeFile | _Counted = self._counted
        if self.compression:
            file = pa.PythonFile(self._counted, mode="r")
            self._stream = pa.CompressedInputStream(file, self.compression)

    def peek(self, size: int) -> bytes:
        """The first ``size`` bytes of what is to come, which the next read gives again."""
        self._ahead = self.read(size)
        return self._ahead

    def read(self, size: int) -> bytes:
        """The next ``size`` bytes; fewer only at the end."""
        parts = [self._ahead[:size]] if self._ahead else []
        missing = size - len(self._ahead[:size])
        self._ahead = self._ahead[size:]
        while missing > 0:
            try:
                part = self._stream.read(missing)
            except OSError as error:
                raise LogevalError(
                    f"{self.name}: damaged {self.compression} data before offset "
                    f"{self._counted.size:,} of the file ({error}); get the file again"
                ) from None
            if not part:
                break
            parts.append(part)
            missing -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def identity(self) -> Manifest:
        """Name, size and checksum, once all was read."""
        name = self.name if self.name == "standard input" else Path(self.name).name
        return {
            "name": name,
            "bytes": self._counted.size,
            "sha256": self._counted.sha256.hexdigest(),
        }

    def close(self) -> None:
        """Close the file (standard input stays open)."""
        if self._raw is not sys.stdin.buffer:
            self._raw.close()


def _open(path: str | Path) -> IO[bytes]:
    try:
        return open(path, "rb", buffering=0)
    except OSError as error:
        raise LogevalError(f"{path}: cannot be read ({error.strerror}); check the path") from None
