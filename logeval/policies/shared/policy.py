"""A policy that is two kernels for one replica, and what these remember."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import numpy as np

from logeval.policies.setting import Setting
from logeval.policies.shared.memory import allocate, plain, view_of
from logeval.running.arrays import Ints
from logeval.running.kernels import njit_views
from logeval.running.names import given_to
from logeval.running.seeds import Uniforms


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
    """``KERNELS`` are what a replica remembers (``shared.memory``), and two kernels:

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
