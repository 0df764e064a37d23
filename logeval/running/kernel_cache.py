"""Compiled kernels on disk, believed only if they are whole and of this code.

numba keeps machine code in files and runs whatever it finds there: one flipped bit is a wrong
number, an empty file ends every command, and so does a full disk; and it does not notice an edit
in a kernel of another file that is called. Here a file is named by the source of the kernel and of
all kernels and constants that it uses, carries the CRC-32 of its bytes, and says what it was
compiled for (versions, types of the arguments, processor). Whatever does not agree, or cannot be
read, is compiled again, and a kernel that cannot be written is used all the same. The checksum is
against accidents: who can write to the folder can run code.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
import pickle
import zlib
from collections.abc import Callable, Iterator
from functools import cached_property
from types import CodeType, ModuleType
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.dispatcher import Dispatcher

from logeval import __version__
from logeval.running import compiling

CRC = 4  # bytes, at the start of a file


class KernelFiles(IndexDataCacheFile):
    """The files of one kernel, one for each combination of types; there is no index."""

    def __init__(self, folder: str, function: Callable[..., Any]) -> None:
        self.folder = folder
        self.function = function

    @cached_property
    def source(self) -> str:
        """Name and checksum of all source that the kernel is made of, when it is first needed."""
        digest = hashlib.sha256()
        for text in _sources(self.function, set()):
            digest.update(text.encode())
        return f"{self.function.__name__}-{digest.hexdigest()[:16]}"

    def _path(self, key: Any) -> str:
        kinds = hashlib.sha256(repr((self._made_by, key)).encode()).hexdigest()[:16]
        return os.path.join(self.folder, f"{self.source}.{kinds}.kernel")

    @property
    def _made_by(self) -> tuple[str, ...]:
        return numba.__version__, __version__, self.source

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
        os.makedirs(self.folder, exist_ok=True)
        with self._open_for_write(self._path(key)) as file:
            file.write(zlib.crc32(content).to_bytes(CRC, "big") + content)


def _sources(function: Callable[..., Any], seen: set[int]) -> Iterator[str]:
    """The source of a kernel, and of all kernels and constants that it uses."""
    seen.add(id(function))
    yield inspect.getsource(function)
    names = sorted(_names(function.__code__))
    known = function.__globals__ | closed_over(function)
    found = [(name, known[name]) for name in names if name in known]
    for name, value in found:
        if isinstance(value, ModuleType):  # of ours: bounds.kl_ucb
            mine = [(n, getattr(value, n)) for n in names if hasattr(value, n)]
            found += mine if value.__name__.startswith("logeval") else []
        elif isinstance(value, Dispatcher):
            if id(value.py_func) not in seen:
                yield from _sources(value.py_func, seen)
        elif hasattr(value, "_fields"):  # a named tuple
            yield f"{name}{value._fields}"
        elif not callable(value):
            yield f"{name}={value!r}"


def _names(code: CodeType) -> set[str]:
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return set(code.co_names + code.co_freevars).union(*map(_names, inner))


def closed_over(function: Callable[..., Any]) -> dict[str, Any]:
    """What a kernel that was made by a function has from there, by its names."""
    values = [cell.cell_contents for cell in function.__closure__ or ()]
    return dict(zip(function.__code__.co_freevars, values, strict=True))


class KernelCache(FunctionCache):
    """numba's cache of a function, which never stops a command."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        folder = os.environ.get("NUMBA_CACHE_DIR") or self._impl.locator.get_cache_path()
        self._cache_file = KernelFiles(folder, function)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """As numba's, but for the checksums of the code: the source is in the name of the file.

        What a kernel closes over has another checksum in every process.
        """
        return sig, codegen.magic_tuple()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel, or None if it has to be compiled."""
        found = None
        with contextlib.suppress(Exception):  # whatever it is, compiling mends it
            found = super().load_overload(sig, target_context)
        if found is None:
            compiling.missing(self._cache_file.function)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel, if that is possible."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)


def keep_compiled(kernel: Any) -> Any:
    """Have a kernel kept on disk; where no folder can be written to, it is compiled every time."""
    with contextlib.suppress(RuntimeError, OSError):
        kernel._cache = KernelCache(kernel.py_func)
    return compiling.timed(kernel)
