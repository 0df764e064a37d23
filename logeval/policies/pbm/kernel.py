"""What the bandits of the position-based model share: counts, and the examination they go by."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from logeval.errors import LogevalError
from logeval.policies.pbm.examination import count, estimate, is_due, note
from logeval.policies.setting import Setting
from logeval.policies.shared.policy import KernelPolicy
from logeval.running.arrays import Ints
from logeval.running.kernels import njit_inline, njit_views


@njit_views
def learn(now, item, c, views):
    """Count a list; whether kappa was estimated anew (lag 0: it is known)."""
    t, lag = now[0], now[1]
    count(item, c, views)
    if lag == 0:
        return False
    note(item, views)
    if not is_due(t, lag):
        return False
    estimate(views)
    return True


def learning(renew: Any) -> Any:
    """The kernel that learns from a list, and then renews what is remembered of an item.

    ``renew(i, mine)`` is called for the items shown; for all items if kappa is another one.
    """

    @njit_inline
    def learn_one(now, mine, A, clicks):
        if learn(now, A, clicks, mine.views):
            for i in range(mine.views.clicks.shape[0]):
                renew(i, mine)
        else:
            for k in range(A.shape[0]):
                renew(A[k], mine)

    return learn_one


class PBM(KernelPolicy):
    """``kappa=estimated`` learns the examination, every ``lag`` steps. ``views`` are in its memory.

    Its kernels are told the step, the lag (0: kappa is known), and more.
    """

    PAPER = "Lagree et al., NeurIPS 2016"
    KNOWS, READS = "examination, or estimated", "all clicks"
    PARAMETERS: ClassVar[dict[str, Any]] = {"kappa": ("known", "estimated"), "lag": 1}
    NEEDS: ClassVar = ("examination",)

    def __init__(self, setting: Setting, given: dict[str, Any], uniforms: int | Ints = 0) -> None:
        super().__init__(setting, given, uniforms=uniforms)
        lag, views = self.given.lag, self.memory.views
        if lag < 1:
            raise LogevalError(f"lag={lag} must be at least 1")
        self._lag = lag if self.given.kappa == "estimated" else 0
        if self._lag == 0:
            views.kappa[:] = e = setting.ask("examination")
            if not ((e > 0.0).all() and (e <= 1.0).all()):
                raise LogevalError(
                    f"policy {setting.policy}: examination must be above 0 and at most 1 at every "
                    "position; ask for fewer positions"
                )
        views.best[:] = np.argsort(-views.kappa, axis=1, kind="stable")
        views.gram[:] = setting.L[:, None, None]

    def now(self, t: int) -> tuple[Any, ...]:
        """The step, the lag, and the rule."""
        return t, self._lag, *self.rule
