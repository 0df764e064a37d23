"""The two ends of the scale: Random lists, and the Oracle, which knows the best ones."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from logeval.policies.setting import Setting
from logeval.running.arrays import Ints
from logeval.running.kernels import njit_views
from logeval.running.uniforms import Uniforms


@njit_views
def shuffle_rows(u, start, item, A):
    """The first K steps of a Fisher-Yates shuffle of each replica's items."""
    for r in range(A.shape[0]):
        a, L = start[r], start[r + 1] - start[r]
        for k in range(A.shape[1]):
            j = min(k + int(u[r, k] * (L - k)), L - 1)
            item[a + k], item[a + j] = item[a + j], item[a + k]
            A[r, k] = item[a + k]


class Random:
    """A random list, or pair, at every step."""

    PARAMETERS: ClassVar[dict[str, object]] = {}
    TRACK: ClassVar = None  # any

    def __init__(self, setting: Setting) -> None:
        self._start = np.concatenate([[0], np.cumsum(setting.L)]).astype(np.int64)
        self._item = np.concatenate([np.arange(L) for L in setting.L])
        self._distinct, self._limits = setting.distinct, setting.limits
        self._uniforms = Uniforms(setting.generators, setting.limits.shape[1])
        self._A = np.empty(setting.limits.shape, dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The lists (R, K), or pairs (R, 2), of step t."""
        u = self._uniforms.at(t)
        if self._distinct:
            shuffle_rows(u, self._start, self._item, self._A)
        else:
            self._A[:] = u * self._limits
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Nothing to learn."""


class Oracle:
    """The best list, or pair, at every step; regret exactly 0.

    With ``order=assumed`` it shows the best items from the first position down, the most attractive
    first: what a policy that assumes falling positions can reach at best. Its regret is 0 where the
    positions do fall.
    """

    PARAMETERS: ClassVar[dict[str, object]] = {"order": ("best", "assumed")}
    TRACK: ClassVar = None  # any
    NEEDS: ClassVar = ("best", "best_items")

    def __init__(self, setting: Setting, *, order: str = "best") -> None:
        best = setting.ask("best" if order == "best" else "best_items")
        self._A = np.ascontiguousarray(best)

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Nothing to learn."""
