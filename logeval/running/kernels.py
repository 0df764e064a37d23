"""How kernels are compiled, and kept: ``njit`` for all, ``njit_views`` for those without arrays.

numba counts the references to every array that a function makes, slices or is given, with atomic
instructions. A kernel that takes what belongs to a replica as views, in a named tuple, spends more
on that than on its rule: CascadeUCB1 took 28 microseconds a step for 20 replicas at (16, 4), and
takes 13 without. Python holds all arrays during a call, so kernels that make none need no counting
(numba's option ``_nrt``); one that allocates does not compile. Nobody calls them from C, and
without the wrapper for that they compile in a tenth less time (``no_cfunc_wrapper``).

A plain 0 has a type of its own in a kernel: what is called with a variable that starts as 0 is
compiled for it, and then again for an integer. ZERO is an integer. At the end are small kernels
that environments and policies share.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import pickle
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

from logeval import __version__
from logeval.running import progress

CRC = 4  # bytes, at the start of a file


class KernelCache(NullCache):
    """Compiled kernels on disk, which are never in the way.

    A kernel is a file named by what it was made of and for. numba has an index instead: of two
    processes that write it at once, one may get the machine code for the other's types, and it
    does not notice an edit in another file. What lacks its CRC-32 or cannot be read is compiled
    again; what cannot be written is used all the same. Who can write to the folder can run code.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def _path(self, sig: Any, codegen: Any) -> Path:
        fields = [getattr(kind, "fields", None) for kind in sig]  # of named tuples, in their order
        made = (numba.__version__, sys.version, __version__, sig, fields, codegen.magic_tuple())
        text = "\n".join([repr(made), *_sources(self._function, set())])
        name = f"{self._function.__name__}-{hashlib.sha256(text.encode()).hexdigest()[:32]}.kernel"
        user = AppDirs(appname="logeval", appauthor=False).user_cache_dir
        return Path(os.environ.get("NUMBA_CACHE_DIR") or user, name)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel, or None if it has to be compiled."""
        target_context.refresh()
        with suppress(Exception):  # whatever it is, compiling mends it
            path = self._path(sig, target_context.codegen())
            found = path.read_bytes()
            crc, content = found[:CRC], found[CRC:]
            if crc == _crc(path, content):
                return CompileResult._rebuild(target_context, *pickle.loads(content))
        progress.compiling()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel, if that is possible."""
        if data.library.has_dynamic_globals:  # addresses of this process
            return
        with suppress(OSError):
            path, content = self._path(sig, data.codegen), dumps(data._reduce())
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
            try:
                partial.write_bytes(_crc(path, content) + content)
                partial.replace(path)
            finally:
                partial.unlink(missing_ok=True)


def _crc(path: Path, content: bytes) -> bytes:
    return zlib.crc32(content, zlib.crc32(path.name.encode())).to_bytes(CRC, "big")


def _sources(function: Callable[..., Any], seen: set[int]) -> Iterator[str]:
    """The source of a kernel, and of all kernels and constants that it uses."""
    seen.add(id(function))
    yield inspect.getsource(function)
    names = sorted(_names(function.__code__))
    known = function.__globals__ | _closed_over(function)
    found = [(name, known[name]) for name in names if name in known]
    for name, value in found:
        if isinstance(value, ModuleType):  # of ours: bounds.kl_ucb
            own = [(n, getattr(value, n)) for n in names if hasattr(value, n)]
            found += own if value.__name__.startswith("logeval") else []
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


def _closed_over(function: Callable[..., Any]) -> dict[str, Any]:
    """What a kernel that was made by a function has from there, by its names."""
    values = [cell.cell_contents for cell in function.__closure__ or ()]
    return dict(zip(function.__code__.co_freevars, values, strict=True))


def njit(*, cache: bool, **options: Any) -> Callable[[Any], Any]:
    """numba's decorator; with ``cache`` the compiled kernel is kept, and checked when loaded."""

    def decorated(function: Any) -> Any:
        # machine code is found by its name: two kernels of one function's making need two names
        for part in _closed_over(function).values():
            function.__qualname__ += f"[{part.__module__}.{part.__qualname__}]"
        kernel = numba.njit(**options)(function)
        if cache:
            kernel._cache = KernelCache(function)
        return kernel

    return decorated


COMMON: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False, "no_cfunc_wrapper": True}

ZERO = np.int64(0)

njit_views: Any = njit(**COMMON)
njit_inline: Any = njit(forceinline=True, **COMMON)

# Sums may be reordered, so that they use vector instructions.
njit_sums: Any = njit(fastmath={"reassoc", "contract"}, **COMMON)


@njit_sums
def dot(x, y):
    """x . y."""
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@njit_views
def sigmoid(z):
    """mu(z) = 1 / (1 + exp(-z))."""
    if z >= 0.0:
        return 1.0 / (1.0 + np.exp(-z))
    e = np.exp(z)
    return e / (1.0 + e)


@njit_views
def best_first_one(score, u, order, top, A):
    """The K largest scores, the k-th largest at the k-th most terminating position.

    Equal scores are ordered by the random numbers u. ``top`` holds the best so far, sorted.
    """
    K, held = A.shape[0], 0
    for a in range(score.shape[0]):
        k = held
        while k > 0:
            b = top[k - 1]
            if score[a] < score[b] or (score[a] == score[b] and u[a] <= u[b]):
                break
            if k < K:
                top[k] = b
            k -= 1
        if k < K:
            top[k] = a
            held = min(held + 1, K)
    for k in range(K):
        A[order[k]] = top[k]


@njit_views
def best_first_rows(score, u, order, top, A):
    """``best_first_one`` for each replica."""
    for r in range(A.shape[0]):
        best_first_one(score[r], u[r], order[r], top, A[r])
