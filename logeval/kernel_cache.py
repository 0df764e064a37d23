"""Compiled kernels on disk, believed only if they are whole.

numba keeps machine code in files and runs whatever it finds there: one flipped bit is a wrong
number, an empty file ends every command, and so does a full disk. Here a file carries the CRC-32
of its bytes and says what it was compiled from (versions, source, types of the arguments,
processor). Whatever does not agree, or cannot be read, is compiled again, and a kernel that cannot
be written is used all the same. The checksum is against accidents: who can write to the folder can
run code.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import zlib
from collections.abc import Callable
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

from logeval import __version__

CRC = 4  # bytes, at the start of a file


class KernelFiles(IndexDataCacheFile):
    """The files of one kernel, one for each combination of types; there is no index."""

    def _path(self, key: Any) -> str:
        types = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return self._data_path(f"{self._index_name.removesuffix('.nbi')}.{types}.kernel")

    @property
    def _made_by(self) -> tuple[Any, ...]:
        return numba.__version__, __version__, self._index_name, self._source_stamp

    def load(self, key: Any) -> Any:
        """What was saved under the key; None if it is damaged, or of other code."""
        with open(self._path(key), "rb") as file:
            content = file.read()
        if zlib.crc32(content[CRC:]).to_bytes(CRC, "big") != content[:CRC]:
            return None
        made_by, found, data = pickle.loads(content[CRC:])
        return data if (made_by, found) == (self._made_by, key) else None

    def save(self, key: Any, data: Any) -> None:
        """Keep it, in place of what is there."""
        content = self._dump((self._made_by, key, data))
        with self._open_for_write(self._path(key)) as file:
            file.write(zlib.crc32(content).to_bytes(CRC, "big") + content)


class KernelCache(FunctionCache):
    """numba's cache of a function, which never stops a command."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = KernelFiles(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel, or None if it has to be compiled."""
        with contextlib.suppress(Exception):  # whatever it is, compiling mends it
            return super().load_overload(sig, target_context)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel, if that is possible."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)


def keep_compiled(kernel: Any) -> Any:
    """Have a kernel kept on disk; where no folder can be written to, it is compiled every time."""
    with contextlib.suppress(RuntimeError, OSError):
        kernel._cache = KernelCache(kernel.py_func)
    return kernel
