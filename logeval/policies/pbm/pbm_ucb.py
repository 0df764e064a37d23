"""PBM-UCB: upper confidence bounds in the position-based model with examination kappa.

S_i clicks on item i in N_i views, N~_i = sum_l kappa_l N_il (``examination.py``), and
theta_i = S_i / N~_i, which may exceed 1. The K largest

    theta_i + sqrt(N_i / N~_i) sqrt(delta / (2 N~_i)),    delta = (1 + eps) log t,

unseen items first, are shown, the largest at the position with the largest kappa.

Lagree, Vernade, Cappe: Multiple-play bandits in the position-based model (NeurIPS 2016).
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from logeval.policies.pbm import paper
from logeval.policies.pbm.examination import Views, views_of
from logeval.policies.pbm.kernel import PBM, learn
from logeval.policies.setting import Setting
from logeval.policies.shared.places import insert_best, show
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import ZERO, njit_inline, njit_views


class Scores(NamedTuple):
    """theta and the width of its bound, of all replicas or of one."""

    theta: Floats  # (L,)
    width: Floats  # (L,) sqrt(N / 2) / N~; -1: unseen


@njit_inline
def scores_of(r, L, scores):
    """Those of replica r, which has L items."""
    return Scores(scores.theta[r, :L], scores.width[r, :L])


@njit_views
def score(i, views, scores):
    """theta and width of item i."""
    scores.theta[i] = views.clicks[i] / views.looked[i]
    scores.width[i] = math.sqrt(0.5 * views.views[i]) / views.looked[i]


@njit_views
def largest_bounds(delta, scores, held, value):
    """PBM-UCB: the K items with the largest theta + width sqrt(delta)."""
    root, size = math.sqrt(delta), ZERO
    for i in range(scores.theta.shape[0]):
        U = scores.theta[i] + scores.width[i] * root if scores.width[i] >= 0.0 else math.inf
        size = insert_best(held, value, size, i, U)


@njit_views
def learn_one(t, lag, item, c, views, scores):
    """``learn``, and the scores of what was shown; of all items seen if kappa is another one."""
    if learn(t, lag, item, c, views):
        for i in range(scores.theta.shape[0]):
            if views.views[i] > 0.0:
                score(i, views, scores)
    else:
        for k in range(item.shape[0]):
            score(item[k], views, scores)


@njit_views
def recommend_all(delta, held, value, A, L, views, scores):
    """The list of each replica."""
    views, scores = Views(*views), Scores(*scores)
    for r in range(A.shape[0]):
        largest_bounds(delta, scores_of(r, L[r], scores), held, value)
        show(held, views.best[r], A[r])


@njit_views
def learn_all(t, lag, A, clicks, L, views, scores):
    """``learn_one`` for each replica."""
    views, scores = Views(*views), Scores(*scores)
    for r in range(A.shape[0]):
        mine = views_of(r, L[r], views), scores_of(r, L[r], scores)
        learn_one(t, lag, A[r], clicks[r], *mine)


class PBMUCB(PBM):
    """PBM-UCB."""

    NAME, COST = "PBM-UCB", "L + K^2"
    REFERENCE, FIGURE = paper.PBMUCB, 22
    PARAMETERS: ClassVar = {**PBM.PARAMETERS, "eps": float}

    def __init__(
        self, setting: Setting, *, kappa: str = "known", lag: int = 1, eps: float = 0.0
    ) -> None:
        R, L = setting.R, int(max(setting.L))
        scores = Scores(np.zeros((R, L)), np.full((R, L), -1.0))
        super().__init__(setting, kappa, lag, scores, learn_all)
        self._eps = eps

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        delta = (1.0 + self._eps) * math.log(t)
        recommend_all(delta, self._held, self._value, self._A, *self._state)
        return self._A
