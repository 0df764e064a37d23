"""What the bandits of the position-based model share: counts, and the examination they go by."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from logeval.errors import LogevalError
from logeval.policies.pbm.examination import count, estimate, is_due, note, views
from logeval.policies.setting import Setting
from logeval.policies.shared.lazy_topk import plain
from logeval.running.arrays import Ints
from logeval.running.kernels import njit_views


@njit_views
def learn(t, lag, item, c, views):
    """Count a list; whether kappa was estimated anew (lag 0: it is known)."""
    count(item, c, views)
    if lag == 0:
        return False
    note(item, views)
    if not is_due(t, lag):
        return False
    estimate(views)
    return True


class PBM:
    """``kappa=estimated`` learns the examination, every ``lag`` steps.

    A policy gives what it remembers of the items, and the kernel that learns it from a list.
    """

    PAPER = "Lagree et al., NeurIPS 2016"
    KNOWS, READS = "examination, or estimated", "all clicks"
    PARAMETERS: ClassVar[dict[str, Any]] = {"kappa": ("known", "estimated"), "lag": int}
    NEEDS: ClassVar = ("examination",)

    def __init__(self, setting: Setting, kappa: str, lag: int, memory: Any, learn_all: Any) -> None:
        if lag < 1:
            raise LogevalError(f"lag={lag} must be at least 1")
        self._lag = lag if kappa == "estimated" else 0
        self._learn_all = learn_all
        L: Ints = np.ascontiguousarray(setting.L, dtype=np.int64)
        self._views, self._memory = views(setting, kappa), memory
        self._state = L, *plain(self._views, memory)
        self._held, self._value = np.empty(setting.K, dtype=np.int64), np.empty(setting.K)
        self._A = np.empty((setting.R, setting.K), dtype=np.int64)

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks on the lists A."""
        self._learn_all(t, self._lag, A, clicks, *self._state)
