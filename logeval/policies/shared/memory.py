"""What a policy remembers of every replica, declared once as a named tuple of arrays.

::

    class Pairs(NamedTuple):
        S: Ints = ints("L", "L")
        N: Ints = ints("L", "L")

Axes are L, the items of a replica, other names (K: its positions), numbers, or functions of the
largest L. ``allocate`` makes the arrays of all replicas, with an axis more in front; ``view_of``
makes the kernel that cuts out what belongs to one replica, as kernels see it. A field may be such a
tuple itself. What is ``shared`` has no axis of replicas: scratch, and what is the same for all.

Python hands the arrays to kernels as ``plain`` tuples, and the view puts the names back on: looking
up the type of a named tuple costs numba more than a microsecond a call, a tenth of a step, and that
of a plain one nearly nothing. Views cost nothing where references are not counted
(``logeval.running.kernels``).
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from logeval.running.kernels import njit_inline

Axis = str | int | Callable[[int], int]


@dataclass(frozen=True)
class Array:
    """An array that is to be made."""

    axes: tuple[Axis, ...]
    dtype: Any
    fill: float
    shared: bool


def of_items(L: int) -> int:
    """An axis of all items, which a view does not cut."""
    return L


def floats(*axes: Axis, fill: float = 0.0, shared: bool = False) -> Any:
    """An array of floats."""
    return Array(axes, np.float64, fill, shared)


def ints(*axes: Axis, fill: int = 0, shared: bool = False, dtype: Any = np.int64) -> Any:
    """An array of integers, or of another type."""
    return Array(axes, dtype, fill, shared)


def several(memory: Any, axis: Axis, **sizes: Axis) -> Any:
    """The same memory along one more axis, with other ``sizes``: ``view_of`` cuts one out."""
    if not isinstance(memory, Array):
        return type(memory)(*(several(part, axis, **sizes) for part in memory))
    axes = [{"L": of_items, **sizes}.get(str(a), a) for a in memory.axes]
    return memory if memory.shared else replace(memory, axes=(axis, *axes))


def allocate(memory: Any, R: int, **sizes: int) -> Any:
    """The arrays of R replicas, with the sizes of the axes by name."""
    if not isinstance(memory, Array):
        return type(memory)(*(allocate(part, R, **sizes) for part in memory))
    shape = [a(sizes["L"]) if callable(a) else sizes.get(str(a), a) for a in memory.axes]
    return np.full(shape if memory.shared else [R, *shape], memory.fill, memory.dtype)


def plain(memory: Any) -> Any:
    """Named tuples of arrays as plain tuples."""
    return tuple(map(plain, memory)) if isinstance(memory, tuple) else memory


def view_of(memory: Any) -> Any:
    """The kernel (r, L, arrays): what of the plain arrays belongs to replica r, with L items.

    A kernel makes a tuple only where all its parts are written out, so they are written here.
    """
    types: dict[str, Any] = {}

    def written(part: Any, path: str) -> str:
        if not isinstance(part, Array):
            types[type(part).__name__] = type(part)
            inside = (written(one, f"{path}[{i}]") for i, one in enumerate(part))
            return f"{type(part).__name__}({', '.join(inside)})"
        cuts = ([] if part.shared else ["r"]) + [":L" if a == "L" else ":" for a in part.axes]
        while cuts and cuts[-1] == ":":
            cuts.pop()
        return f"{path}[{', '.join(cuts)}]" if cuts else path

    source = f"def view(r, L, arrays):\n    return {written(memory, 'arrays')}\n"
    name = f"<{type(memory).__module__}.{type(memory).__qualname__}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    exec(compile(source, name, "exec"), types)
    types["view"].__qualname__ += name
    return njit_inline(types["view"])
