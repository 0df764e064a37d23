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
from typing import Any, ClassVar, NamedTuple

from logeval.policies.pbm.kernel import PBM, Views, learning
from logeval.policies.setting import Setting
from logeval.policies.shared.bounds import kl
from logeval.policies.shared.memory import floats, ints
from logeval.policies.shared.places import insert_best, show
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import ZERO, njit_inline, njit_views


class Scores(NamedTuple):
    """theta, and what is known of B, of one replica."""

    theta: Floats = floats("L")
    inside: Floats = floats("L", fill=-1.0)  # the largest x at which an item is known to be in B
    outside: Floats = floats("L", fill=math.inf)  # the smallest x at which it is known not to be
    views: Views = Views()
    held: Ints = ints("K", shared=True)
    value: Floats = floats("K", shared=True)
    candidates: Ints = ints("L", shared=True)


@njit_inline
def score(i, mine):
    """A new theta of item i; what was known of B is forgotten."""
    views = mine.views
    mine.theta[i] = views.clicks[i] / views.looked[i] if views.views[i] > 0.0 else 0.0
    mine.inside[i], mine.outside[i] = -1.0, math.inf


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


@njit_inline
def explore(budget, mine):
    """The items of B as candidates, and how many they are."""
    held, n = mine.held, 0
    x = mine.theta[held[held.shape[0] - 1]]
    if x > 1.0:
        return 0
    for i in range(mine.theta.shape[0]):
        if x >= mine.outside[i]:
            continue
        if x > mine.inside[i]:
            if may_be_better(i, x, budget, mine.views):
                mine.inside[i] = x
            else:
                mine.outside[i] = x
                continue
        taken = False
        for k in range(held.shape[0]):
            taken |= held[k] == i
        if not taken:
            mine.candidates[n] = i
            n += 1
    return n


@njit_inline
def recommend_one(now, u, mine, A):
    """The greedy list, whose last place explores every other time."""
    (t, _, budget), held = now, mine.held
    L, K, size = mine.theta.shape[0], A.shape[0], ZERO
    if t <= L:
        for k in range(K):
            held[k] = (t - 1 + k) % L
    else:
        for i in range(L):
            size = insert_best(held, mine.value, size, i, mine.theta[i])
        n = explore(budget, mine) if u[0] < 0.5 else 0
        if n > 0:
            held[K - 1] = mine.candidates[min(int(u[1] * n), n - 1)]
    show(held, mine.views.best, A)


class PBMPIE(PBM):
    """PBM-PIE."""

    NAME = "PBM-PIE"
    KNOWS, COST = "horizon, examination, or estimated", "L K"
    FIGURE = 24
    PARAMETERS: ClassVar = {**PBM.PARAMETERS, "eps": 0.0}
    KERNELS = Scores(), recommend_one, learning(score)

    def __init__(self, setting: Setting, **given: Any) -> None:
        super().__init__(setting, given, uniforms=2)
        self.rule = ((1.0 + self.given.eps) * math.log(setting.horizon),)
