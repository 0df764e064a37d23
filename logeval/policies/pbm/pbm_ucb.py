"""PBM-UCB: upper confidence bounds in the position-based model with examination kappa.

S_i clicks on item i in N_i views, N~_i = sum_l kappa_l N_il (``pbm.kernel``), and
theta_i = S_i / N~_i, which may exceed 1. The K largest

    theta_i + sqrt(N_i / N~_i) sqrt(delta / (2 N~_i)),    delta = (1 + eps) log t,

unseen items first, are shown, the largest at the position with the largest kappa.

Lagree, Vernade, Cappe: Multiple-play bandits in the position-based model (NeurIPS 2016).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

from logeval.policies.pbm.kernel import PBM, Views, learning
from logeval.policies.setting import Setting
from logeval.policies.shared.memory import floats, ints
from logeval.policies.shared.places import insert_best, show
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import ZERO, njit_inline


class Scores(NamedTuple):
    """theta and the width of its bound, of one replica."""

    theta: Floats = floats("L")
    width: Floats = floats("L", fill=-1.0)  # sqrt(N / 2) / N~; -1: unseen
    views: Views = Views()
    held: Ints = ints("K", shared=True)
    value: Floats = floats("K", shared=True)


@njit_inline
def score(i, mine):
    """theta and width of item i, if it was seen."""
    views = mine.views
    if views.views[i] > 0.0:
        mine.theta[i] = views.clicks[i] / views.looked[i]
        mine.width[i] = math.sqrt(0.5 * views.views[i]) / views.looked[i]


@njit_inline
def recommend_one(now, u, mine, A):
    """The K items with the largest theta + width sqrt(delta)."""
    _, _, delta = now
    root, size = math.sqrt(delta), ZERO
    for i in range(mine.theta.shape[0]):
        U = mine.theta[i] + mine.width[i] * root if mine.width[i] >= 0.0 else math.inf
        size = insert_best(mine.held, mine.value, size, i, U)
    show(mine.held, mine.views.best, A)


class PBMUCB(PBM):
    """PBM-UCB."""

    NAME, COST = "PBM-UCB", "L + K^2"
    FIGURE = 22
    PARAMETERS: ClassVar = {**PBM.PARAMETERS, "eps": 0.0}
    KERNELS = Scores(), recommend_one, learning(score)

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given)

    def now(self, t: int) -> tuple[int, int, float]:
        """The step, the lag, and delta."""
        return t, self._lag, (1.0 + self.given.eps) * math.log(t)
