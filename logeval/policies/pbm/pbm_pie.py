"""PBM-PIE: greedy lists of the position-based model, whose last place explores.

theta_i = S_i / N~_i as in PBM-UCB. Rounds 1 to L show the items in cyclic shifts. Then D = the K
largest theta, in order. B holds the items i outside of D with U_i >= theta of the last of D; U_i is
the largest q with Phi_i(q) = sum_l N_il d(S_il / N_il, kappa_l q) <= (1 + eps) log n. With
probability 1/2, if B is not empty, the last place shows a random item of B.

No U is solved for: at x, item i is in B if Phi_i'(x) <= 0 or Phi_i(x) <= (1 + eps) log n, and then
also for smaller x, so what is known of an item holds until it is shown again.

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
from logeval.policies.shared.bounds import kl
from logeval.policies.shared.places import insert_best, show
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import ZERO, njit_inline, njit_views
from logeval.running.uniforms import Uniforms


class Scores(NamedTuple):
    """theta, and what is known of B, of all replicas or of one."""

    theta: Floats  # (L,)
    inside: Floats  # (L,) the largest x at which the item is known to be in B
    outside: Floats  # (L,) the smallest x at which it is known not to be


@njit_inline
def scores_of(r, L, scores):
    """Those of replica r, which has L items."""
    return Scores(scores.theta[r, :L], scores.inside[r, :L], scores.outside[r, :L])


@njit_views
def score(i, views, scores):
    """A new theta of item i; what was known of B is forgotten."""
    scores.theta[i] = views.clicks[i] / views.looked[i] if views.views[i] > 0.0 else 0.0
    scores.inside[i], scores.outside[i] = -1.0, math.inf


@njit_views
def may_be_better(i, x, budget, views):
    """Whether U_i >= x: Phi_i'(x) <= 0 or Phi_i(x) <= budget."""
    if x <= 0.0:
        return True
    phi, slope = 0.0, 0.0
    for k in range(views.kappa.shape[0]):
        N, S = views.N[i, k], views.S[i, k]
        if N > 0:
            q = views.kappa[k] * x
            phi += N * kl(S / N, min(q, 1.0))
            slope -= S / x
            if N > S:
                slope += (N - S) * views.kappa[k] / (1.0 - q) if q < 1.0 else math.inf
    return slope <= 0.0 or phi <= budget


@njit_views
def explore(budget, views, scores, held, candidates):
    """The items of B, and how many they are."""
    x, n = scores.theta[held[held.shape[0] - 1]], 0
    if x > 1.0:
        return 0
    for i in range(scores.theta.shape[0]):
        if x >= scores.outside[i]:
            continue
        if x > scores.inside[i]:
            if may_be_better(i, x, budget, views):
                scores.inside[i] = x
            else:
                scores.outside[i] = x
                continue
        taken = False
        for k in range(held.shape[0]):
            taken |= held[k] == i
        if not taken:
            candidates[n] = i
            n += 1
    return n


@njit_views
def recommend_one(t, budget, u, views, scores, held, value, candidates):
    """The greedy list, whose last place explores every other time."""
    L, K = scores.theta.shape[0], held.shape[0]
    if t <= L:
        for k in range(K):
            held[k] = (t - 1 + k) % L
        return
    size = ZERO
    for i in range(L):
        size = insert_best(held, value, size, i, scores.theta[i])
    if u[0] < 0.5:
        n = explore(budget, views, scores, held, candidates)
        if n > 0:
            held[K - 1] = candidates[min(int(u[1] * n), n - 1)]


@njit_views
def learn_one(t, lag, item, c, views, scores):
    """``learn``, and the scores of what was shown; of all items if kappa is another one."""
    if learn(t, lag, item, c, views):
        for i in range(scores.theta.shape[0]):
            score(i, views, scores)
    else:
        for k in range(item.shape[0]):
            score(item[k], views, scores)


@njit_views
def recommend_all(t, budget, u, held, value, candidates, A, L, views, scores):
    """``recommend_one`` for each replica."""
    views, scores = Views(*views), Scores(*scores)
    for r in range(A.shape[0]):
        mine = views_of(r, L[r], views), scores_of(r, L[r], scores)
        recommend_one(t, budget, u[r], *mine, held, value, candidates)
        show(held, views.best[r], A[r])


@njit_views
def learn_all(t, lag, A, clicks, L, views, scores):
    """``learn_one`` for each replica."""
    views, scores = Views(*views), Scores(*scores)
    for r in range(A.shape[0]):
        mine = views_of(r, L[r], views), scores_of(r, L[r], scores)
        learn_one(t, lag, A[r], clicks[r], *mine)


class PBMPIE(PBM):
    """PBM-PIE."""

    NAME = "PBM-PIE"
    KNOWS, COST = "horizon, examination, or estimated", "L K"
    REFERENCE, FIGURE = paper.PBMPIE, 24
    PARAMETERS: ClassVar = {**PBM.PARAMETERS, "eps": float}

    def __init__(
        self, setting: Setting, *, kappa: str = "known", lag: int = 1, eps: float = 0.0
    ) -> None:
        R, L = setting.R, int(max(setting.L))
        scores = Scores(np.zeros((R, L)), np.full((R, L), -1.0), np.full((R, L), np.inf))
        super().__init__(setting, kappa, lag, scores, learn_all)
        self._budget = (1.0 + eps) * math.log(setting.horizon)
        self._uniforms = Uniforms(setting.generators, 2)
        self._scratch = self._held, self._value, np.empty(L, dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        u = self._uniforms.at(t)
        recommend_all(t, self._budget, u, *self._scratch, self._A, *self._state)
        return self._A
