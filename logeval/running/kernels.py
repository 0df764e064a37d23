"""How kernels are compiled: ``njit`` for all, ``njit_views`` for those that allocate nothing.

numba counts the references to every array that a function makes, slices or is given, with atomic
instructions. A kernel that takes what belongs to a replica as views, in a named tuple, spends more
on that than on its rule: CascadeUCB1 took 28 microseconds a step for 20 replicas at (16, 4), and
takes 13 without. Python holds all arrays during a call, so kernels that make none need no counting
(numba's option ``_nrt``); one that allocates does not compile. Nobody calls them from C, and
without the wrapper for that they compile in a tenth less time (``no_cfunc_wrapper``).

A plain 0 has a type of its own in a kernel: what is called with a variable that starts as 0 is
compiled for it, and then again for an integer. ZERO is an integer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from logeval.running.kernel_cache import closed_over, keep_compiled


def njit(*, cache: bool, **options: Any) -> Callable[[Any], Any]:
    """numba's decorator; with ``cache`` the compiled kernel is kept, and checked when loaded."""

    def decorated(function: Any) -> Any:
        # machine code is found by its name: two kernels of one function's making need two names
        for part in closed_over(function).values():
            function.__qualname__ += f"[{part.__module__}.{part.__qualname__}]"
        kernel = numba.njit(**options)(function)
        return keep_compiled(kernel) if cache else kernel

    return decorated


COMMON: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False, "no_cfunc_wrapper": True}

ZERO = np.int64(0)

njit_views: Any = njit(**COMMON)
njit_inline: Any = njit(forceinline=True, **COMMON)
