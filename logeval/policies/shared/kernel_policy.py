"""A policy that is two kernels for one replica, and what it remembers of every replica.

The memory is declared once as a named tuple of arrays::

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
from functools import cache
from typing import Any, ClassVar

import numpy as np

from logeval.policies.setting import Setting
from logeval.running.arrays import Ints
from logeval.running.kernels import njit_inline, njit_views
from logeval.running.names import given_to
from logeval.running.seeds import Uniforms

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
    # without a module numba keeps all globals with the kernel, Python's builtins among them
    types: dict[str, Any] = {"__name__": type(memory).__module__}

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


@cache
def for_each_replica(memory: Any, recommend_one: Any, learn_one: Any) -> tuple[Any, Any]:
    """The kernels for all replicas, one after the other."""
    view = view_of(memory)

    @njit_views
    def recommend_all(now, u, A, L, arrays):
        for r in range(A.shape[0]):
            recommend_one(now, u[r], view(r, L[r], arrays), A[r])

    @njit_views
    def learn_all(now, A, clicks, L, arrays):
        for r in range(A.shape[0]):
            learn_one(now, view(r, L[r], arrays), A[r], clicks[r])

    return recommend_all, learn_all


class KernelPolicy:
    """``KERNELS`` are what a replica remembers, and two kernels:

    - ``recommend_one(now, u, mine, A)`` writes the action A; u are the uniforms of the step
    - ``learn_one(now, mine, A, clicks)`` learns from the clicks on it

    ``now`` is what ``self.now(t)`` says, ``mine`` the memory of the replica. They are called once,
    and ``njit_inline``: handing over all views would cost more than a rule.
    """

    KERNELS: ClassVar[tuple[Any, Any, Any]]

    def __init__(
        self,
        setting: Setting,
        given: dict[str, Any],
        *,
        uniforms: int | Ints = 0,
        items: Ints | None = None,
        sizes: dict[str, int] | None = None,
    ) -> None:
        self.given = given_to(type(self), given)
        L = np.ascontiguousarray(setting.L if items is None else items, dtype=np.int64)
        axes = {"L": int(max(L)), "K": setting.K, **(sizes or {})}
        self.memory = allocate(self.KERNELS[0], setting.R, **axes)
        self.rule: tuple[Any, ...] = ()
        self._recommend, self._learn = for_each_replica(*self.KERNELS)
        self._L, self._arrays, self._now = L, plain(self.memory), self.rule
        self._uniforms = Uniforms(setting.generators, uniforms) if np.any(uniforms) else None
        self._none = np.empty((setting.R, 0))
        self._A = np.empty(setting.limits.shape, dtype=np.int64)

    def now(self, t: int) -> tuple[Any, ...]:
        """What the kernels are told of step t, and of the rule."""
        return self.rule

    def recommend(self, t: int) -> Ints:
        """The actions (R, K) of step t."""
        u = self._none if self._uniforms is None else self._uniforms.at(t)
        self._now = now = self.now(t)
        self._recommend(now, u, self._A, self._L, self._arrays)
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks on the actions A, the last ones recommended."""
        self._learn(self._now, A, clicks, self._L, self._arrays)
