"""Random lists, the Oracle, which knows the best ones, and Logged, today's ranker."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from logeval.policies.contextual import ContextualPolicy
from logeval.policies.setting import Setting
from logeval.policies.shared.places import copy, shuffle_first
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit_views
from logeval.running.names import given_to
from logeval.running.seeds import Uniforms


@njit_views
def shuffle_rows(u, L, items, A):
    """The first K steps of a Fisher-Yates shuffle of each replica's items."""
    for r in range(A.shape[0]):
        shuffle_first(items[r, : L[r]], u[r])
        copy(items[r], A[r])


class ContextualRandom(ContextualPolicy):
    """A random list at every step."""

    KNOWS, READS, COST = "nothing", "none", "L"

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, {})

    def _scores(self, t: int) -> Floats:
        return np.zeros(self._now.row.shape)  # ties are broken at random

    def _learn(self, t: int, A: Ints, clicks: Ints, C: Ints) -> None:
        pass


class ContextualOracle:
    """The best list for the user of the round; with ``users=common`` one list for all users.

    The common one is best for the mean attraction: what can be had without knowing users.
    """

    PARAMETERS: ClassVar = {"users": ("each", "common")}
    TRACK = "contextual"
    NEEDS: ClassVar = ("contexts", "best", "common")

    def __init__(self, setting: Setting, **given: Any) -> None:
        self._each = given_to(type(self), given).users == "each"
        self._contexts, self._best, self._common = map(setting.ask, self.NEEDS)
        self._A = np.empty((setting.R, setting.K), dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        now = self._contexts.at(t)
        if self._each:
            best: Ints = self._best
            return best
        top = np.argsort(-self._common(), axis=1, kind="stable")[:, : self._A.shape[1]]
        np.put_along_axis(self._A, now.order, top, axis=1)
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Nothing to learn."""


class Random:
    """A random list, or pair, at every step."""

    NAME = "Random"
    KNOWS, READS, COST = "nothing", "none", "K"
    FIGURE = 8
    LATE = True
    IN_TRACK: ClassVar = {"contextual": ContextualRandom}
    TRACK = None  # any

    def __init__(self, setting: Setting) -> None:
        self._distinct, self._limits = setting.distinct, setting.limits
        self._L = np.ascontiguousarray(setting.L, dtype=np.int64)
        self._uniforms = Uniforms(setting.generators, setting.K)
        self._items = np.tile(np.arange(max(setting.L)), (setting.R, 1))
        self._A = np.empty(setting.limits.shape, dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The lists (R, K), or pairs (R, 2), of step t."""
        u = self._uniforms.at(t)
        if self._distinct:
            shuffle_rows(u, self._L, self._items, self._A)
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

    NAME = "Oracle"
    KNOWS, READS, COST = "the optimum", "none", "1"
    FIGURE = 9
    LATE = True
    IN_TRACK: ClassVar = {"contextual": ContextualOracle}
    PARAMETERS: ClassVar[dict[str, object]] = {"order": ("best", "assumed")}
    TRACK = None  # any
    NEEDS: ClassVar = ("best", "best_items")

    def __init__(self, setting: Setting, **given: Any) -> None:
        assumed = given_to(type(self), given).order == "assumed"
        self._A = np.ascontiguousarray(setting.ask("best_items" if assumed else "best"))

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Nothing to learn."""


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
    """Today's ranker: lists as often as the log shows them.

    A pair is the first item of a list, at the first position. It learns nothing. Its expected
    reward is what every policy has to beat; ``lists=top`` always shows the list that the log shows
    most often.
    """

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
