"""PBM-UCB, PBM-PIE and BC-MPTS: bandits for the position-based model with examination kappa.

S_i clicks on item i in N_i views, N~_i = sum_l kappa_l N_il (``examination.py``), and
theta_i = S_i / N~_i, which may exceed 1. Larger values go to positions with larger kappa.

- PBM-UCB: the K largest theta_i + sqrt(N_i / N~_i) sqrt(delta / (2 N~_i)), delta = (1 + eps) log t;
  unseen items first.
- PBM-PIE: rounds 1 to L show the items in cyclic shifts. Then D = the K largest theta, in order.
  B holds the items i outside of D with U_i >= theta of the last of D; U_i is the largest q
  with Phi_i(q) = sum_l N_il d(S_il / N_il, kappa_l q) <= (1 + eps) log n. With probability 1/2,
  if B is not empty, the last place shows a random item of B. No U is solved for: at x, item i is in
  B if Phi_i'(x) <= 0 or Phi_i(x) <= (1 + eps) log n, and then also for smaller x, so what is known
  of an item holds until it is shown again.
- BC-MPTS: the K largest theta_i ~ Beta(1 + S_i, 1 + sum_l max(0, kappa_l N_il - S_il)). Fast and
  biased: its regret has a heavy tail.

Lagree, Vernade, Cappe: Multiple-play bandits in the position-based model (NeurIPS 2016),
PBM-UCB and PBM-PIE. Komiyama, Honda, Nakagawa (ICML 2015), bias-corrected MP-TS.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np
from numba import njit

from logeval.arrays import Floats, Ints
from logeval.errors import LogevalError
from logeval.policies.bounds import kl
from logeval.policies.ranking.examination import count, estimate, is_due, note, views, views_of
from logeval.policies.ranking.places import insert_best, places, read, show
from logeval.policies.ranking.top_betas import betas_of, set_beta, top_draws, uniform_betas
from logeval.policies.setting import Setting
from logeval.uniforms import Uniforms

KAPPA = ("known", "estimated")


class Scores(NamedTuple):
    """theta and the width of its bound, of all replicas or of one."""

    theta: Floats  # (L,)
    width: Floats  # (L,) sqrt(N / 2) / N~


@njit(cache=True, nogil=True)
def score(i, views, scores):
    """theta and width of item i."""
    scores.theta[i] = views.clicks[i] / views.looked[i]
    scores.width[i] = math.sqrt(0.5 * views.views[i]) / views.looked[i]


@njit(cache=True, nogil=True)
def largest_bounds(delta, scores, held, value):
    """PBM-UCB: the K items with the largest theta + width sqrt(delta)."""
    root, size = math.sqrt(delta), 0
    for i in range(scores.theta.shape[0]):
        U = scores.theta[i] + scores.width[i] * root if scores.width[i] >= 0.0 else math.inf
        size = insert_best(held, value, size, i, U)


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def ucb_all(delta, labels, views, scores, held, value, A):
    """The list of each replica."""
    for r in range(A.shape[0]):
        L = labels.L[r]
        mine = Scores(scores.theta[r, :L], scores.width[r, :L])
        largest_bounds(delta, mine, held, value)
        show(held, labels.item[r], views.best[r], A[r])


@njit(cache=True, nogil=True)
def learn_all(t, lag, A, clicks, labels, views, scores, known, item, c):
    """``learn`` and new scores for each replica; what is known of B is forgotten."""
    for r in range(A.shape[0]):
        read(A[r], clicks[r], labels.label[r], labels.order, item, c)
        L = labels.L[r]
        mine = views_of(r, L, views)
        s = Scores(scores.theta[r, :L], scores.width[r, :L])
        if learn(t, lag, item, c, mine):
            for i in range(L):
                known[r, i, 0], known[r, i, 1] = -1.0, math.inf
                if mine.views[i] > 0.0:
                    score(i, mine, s)
        else:
            for k in range(item.shape[0]):
                known[r, item[k], 0], known[r, item[k], 1] = -1.0, math.inf
                score(item[k], mine, s)


class PBM:
    """What PBM-UCB and PBM-PIE share."""

    PARAMETERS: ClassVar = {"kappa": KAPPA, "lag": int, "eps": float}
    NEEDS: ClassVar = ("examination",)

    def __init__(
        self, setting: Setting, *, kappa: str = "known", lag: int = 1, eps: float = 0.0
    ) -> None:
        R, K, L = setting.R, setting.K, int(max(setting.L))
        self._labels = places(setting)
        self._views = views(setting, kappa)
        self._lag, self._eps = lag_of(kappa, lag), eps
        self._scores = Scores(np.zeros((R, L)), np.full((R, L), -1.0))
        self._known = np.zeros((R, L, 2))  # in B up to the first, not in B from the second on
        self._known[:, :, 0], self._known[:, :, 1] = -1.0, np.inf
        self._held, self._c = np.empty(K, dtype=np.int64), np.empty(K, dtype=np.int64)
        self._value = np.empty(K)
        self._A = np.empty((R, K), dtype=np.int64)

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks on the lists A."""
        learn_all(
            t, self._lag, A, clicks, self._labels, self._views, self._scores, self._known,
            self._held, self._c,
        )  # fmt: skip


def lag_of(kappa: str, lag: int) -> int:
    """Steps between two estimates of kappa; 0 if it is known."""
    if lag < 1:
        raise LogevalError(f"lag={lag} must be at least 1")
    return lag if kappa == "estimated" else 0


class PBMUCB(PBM):
    """PBM-UCB; ``kappa=estimated`` learns the examination, every ``lag`` steps."""

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        delta = (1.0 + self._eps) * math.log(t)
        ucb_all(delta, self._labels, self._views, self._scores, self._held, self._value, self._A)
        return self._A


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def explore(budget, theta, views, known, held, candidates):
    """The items of B, and how many they are."""
    x, n = theta[held[held.shape[0] - 1]], 0
    if x > 1.0:
        return 0
    for i in range(theta.shape[0]):
        if x >= known[i, 1]:
            continue
        if x > known[i, 0]:
            if may_be_better(i, x, budget, views):
                known[i, 0] = x
            else:
                known[i, 1] = x
                continue
        taken = False
        for k in range(held.shape[0]):
            taken |= held[k] == i
        if not taken:
            candidates[n] = i
            n += 1
    return n


@njit(cache=True, nogil=True)
def pie_one(t, budget, u, theta, views, known, held, value, candidates):
    """The greedy list, whose last place explores every other time."""
    L, K = theta.shape[0], held.shape[0]
    if t <= L:
        for k in range(K):
            held[k] = (t - 1 + k) % L
        return
    size = 0
    for i in range(L):
        size = insert_best(held, value, size, i, theta[i])
    if u[0] < 0.5:
        n = explore(budget, theta, views, known, held, candidates)
        if n > 0:
            held[K - 1] = candidates[min(int(u[1] * n), n - 1)]


@njit(cache=True, nogil=True)
def pie_all(t, budget, u, labels, views, scores, known, held, value, candidates, A):
    """``pie_one`` for each replica."""
    for r in range(A.shape[0]):
        L = labels.L[r]
        mine = scores.theta[r, :L], views_of(r, L, views), known[r]
        pie_one(t, budget, u[r], *mine, held, value, candidates)
        show(held, labels.item[r], views.best[r], A[r])


class PBMPIE(PBM):
    """PBM-PIE."""

    def __init__(
        self, setting: Setting, *, kappa: str = "known", lag: int = 1, eps: float = 0.0
    ) -> None:
        super().__init__(setting, kappa=kappa, lag=lag, eps=eps)
        self._budget = (1.0 + eps) * math.log(setting.horizon)
        self._uniforms = Uniforms(setting.generators, 2)
        self._candidates = np.empty(int(max(setting.L)), dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        pie_all(
            t, self._budget, self._uniforms.at(t), self._labels, self._views, self._scores,
            self._known, self._held, self._value, self._candidates, self._A,
        )  # fmt: skip
        return self._A


@njit(cache=True, nogil=True)
def correct_bias(i, views, betas):
    """BC-MPTS: the posterior of item i."""
    failures = 0.0
    for k in range(views.kappa.shape[0]):
        failures += max(0.0, views.kappa[k] * views.N[i, k] - views.S[i, k])
    set_beta(i, 1.0 + views.clicks[i], 1.0 + failures, betas)


@njit(cache=True, nogil=True)
def draw_all(u, labels, views, betas, held, theta, A):
    """BC-MPTS: the largest draws of each replica."""
    for r in range(A.shape[0]):
        top_draws(u[r], betas_of(r, labels.L[r], betas), held, theta)
        show(held, labels.item[r], views.best[r], A[r])


@njit(cache=True, nogil=True)
def correct_all(t, lag, A, clicks, labels, views, betas, item, c):
    """BC-MPTS: ``learn`` and new posteriors for each replica."""
    for r in range(A.shape[0]):
        read(A[r], clicks[r], labels.label[r], labels.order, item, c)
        L = labels.L[r]
        mine, b = views_of(r, L, views), betas_of(r, L, betas)
        if learn(t, lag, item, c, mine):
            for i in range(L):
                correct_bias(i, mine, b)
        else:
            for k in range(item.shape[0]):
                correct_bias(item[k], mine, b)


class BCMPTS:
    """BC-MPTS."""

    PARAMETERS: ClassVar = {"kappa": KAPPA, "lag": int}
    NEEDS: ClassVar = ("examination",)

    def __init__(self, setting: Setting, *, kappa: str = "known", lag: int = 1) -> None:
        R, K, L = setting.R, setting.K, int(max(setting.L))
        self._labels = places(setting)
        self._views = views(setting, kappa)
        self._lag = lag_of(kappa, lag)
        self._betas = uniform_betas(R, L)
        self._uniforms = Uniforms(setting.generators, setting.L)
        self._held, self._c = np.empty(K, dtype=np.int64), np.empty(K, dtype=np.int64)
        self._theta = np.empty(K)
        self._A = np.empty((R, K), dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        draw_all(
            self._uniforms.at(t), self._labels, self._views, self._betas, self._held,
            self._theta, self._A,
        )  # fmt: skip
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks on the lists A."""
        correct_all(
            t, self._lag, A, clicks, self._labels, self._views, self._betas, self._held, self._c
        )
