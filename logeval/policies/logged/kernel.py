"""Today's ranker: what the log showed, list by list with the log's frequencies.

It learns nothing. Its expected reward is what every policy has to beat; ``lists=top`` always shows
the list that the log shows most often.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from logeval.policies.setting import Setting
from logeval.running.arrays import Ints
from logeval.running.kernels import njit_views
from logeval.running.uniforms import Uniforms


@njit_views
def draw_all(u, start, up_to, actions, A):
    """The first action of each replica whose cumulated probability is above its uniform."""
    for r in range(A.shape[0]):
        low, high = start[r], start[r + 1] - 1
        while low < high:
            middle = (low + high) // 2
            if up_to[middle] > u[r, 0]:
                high = middle
            else:
                low = middle + 1
        for k in range(A.shape[1]):
            A[r, k] = actions[low, k]


class Logged:
    """A list (or, of pairs, its first item at the first position) as the log shows it."""

    NAME = "Logged"
    KNOWS, READS, COST = "nothing", "none", "log of the number of lists"
    FIGURE = 30
    PARAMETERS: ClassVar = {"lists": ("all", "top")}
    TRACK = None  # any
    NEEDS: ClassVar = ("logged",)

    def __init__(self, setting: Setting, *, lists: str = "all") -> None:
        shown = [setting.ask("logged")(r) for r in range(setting.R)]
        if lists == "top":
            shown = [(actions[:1], np.ones(1)) for actions, _ in shown]
        sizes = [len(p) for _, p in shown]
        self._start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._up_to = np.concatenate([np.cumsum(p) for _, p in shown])
        self._actions = np.ascontiguousarray(np.concatenate([actions for actions, _ in shown]))
        self._uniforms = Uniforms(setting.generators, 1)
        self._A = np.empty(setting.limits.shape, dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The lists (R, K), or pairs (R, 2), of step t."""
        draw_all(self._uniforms.at(t), self._start, self._up_to, self._actions, self._A)
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Nothing to learn."""
