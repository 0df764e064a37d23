"""CTS and TS-Cascade: Thompson sampling in the cascade model.

S_i clicks on item i in N_i examinations, where a list is examined up to its first click, or to the
end without one (``feedback=last``: up to the last click, all of which count, as in the DCM).

- CTS: theta_i ~ Beta(1 + S_i, 1 + N_i - S_i), independent; the K largest, in that order.
- TS-Cascade: m_i + Z sd_i with m_i = S_i / N_i (0 if N_i = 0), one Z ~ N(0, 1) per round for all
  items, and sd_i = max(sqrt(m_i (1 - m_i) log(t+1) / (N_i + 1)), log(t+1) / (N_i + 1)).

Zhong, Cheung, Tan: Thompson sampling algorithms for cascading bandits (JMLR 22, 2021), and the
authors' programs of that paper.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtri

from logeval.policies.cascade_thompson import paper
from logeval.policies.setting import Setting
from logeval.policies.shared.lazy_topk import plain
from logeval.policies.shared.places import Places, insert_best, places, read, show
from logeval.policies.shared.positions import ORDER
from logeval.policies.shared.top_betas import Betas, betas_of, count_beta, top_draws, uniform_betas
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import ZERO, njit_inline, njit_views
from logeval.running.uniforms import Uniforms


@njit_views
def examined(c, last):
    """How many positions were examined: up to the first (or last) click, all without one."""
    end = 0
    for k in range(c.shape[0]):
        if c[k]:
            end = k + 1
            if not last:
                break
    return end if end else c.shape[0]


@njit_views
def update_one(held, c, last, betas):
    """CTS: a click adds to a, an examination without one to b."""
    for k in range(examined(c, last)):
        count_beta(held[k], c[k], betas)


@njit_views
def recommend_all(u, held, A, places, betas):
    """The largest draws of each replica."""
    places, betas = Places(*places), Betas(*betas)
    for r in range(A.shape[0]):
        top_draws(u[r], betas_of(r, places.L[r], betas), held)
        show(held, places.order, A[r])


@njit_views
def update_all(A, clicks, last, held, c, places, betas):
    """``update_one`` for each replica."""
    places, betas = Places(*places), Betas(*betas)
    for r in range(A.shape[0]):
        read(A[r], clicks[r], places.order, held, c)
        update_one(held, c, last, betas_of(r, places.L[r], betas))


class CTS:
    """CTS; ``order`` lists the positions in the order of examination."""

    NAME, PAPER = "CTS", "Zhong et al., JMLR 2021"
    KNOWS, READS, COST = ORDER, "up to the first click", "L"
    REFERENCE, FIGURE = paper.CTS, 16
    PARAMETERS: ClassVar = {"feedback": ("first", "last"), "order": str}

    def __init__(
        self, setting: Setting, *, feedback: str = "first", order: str = "descending"
    ) -> None:
        R, K, L = setting.R, setting.K, int(max(setting.L))
        self._places = places(setting, order)
        self._last = feedback == "last"
        self._betas = uniform_betas(R, L)
        self._state = plain(self._places, self._betas)
        self._uniforms = Uniforms(setting.generators, setting.L)
        self._held, self._c = np.empty(K, dtype=np.int64), np.empty(K, dtype=np.int64)
        self._A = np.empty((R, K), dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        u = self._uniforms.at(t)
        recommend_all(u, self._held, self._A, *self._state)
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks on the lists A."""
        update_all(A, clicks, self._last, self._held, self._c, *self._state)


class Gaussians(NamedTuple):
    """Counts, and what makes the draws, of all replicas or of one."""

    S: Floats  # (L,)
    N: Floats  # (L,)
    m: Floats  # (L,) S / N
    root: Floats  # (L,) sqrt(m (1 - m) / (N + 1))
    inverse: Floats  # (L,) 1 / (N + 1)


@njit_views
def rank_one(z, t, g, held, value):
    """The K largest m + Z sd."""
    log = math.log(t + 1.0)
    root, size = math.sqrt(log), ZERO
    for i in range(g.m.shape[0]):
        x = g.m[i] + z * max(g.root[i] * root, g.inverse[i] * log)
        size = insert_best(held, value, size, i, x)


@njit_views
def count_one(held, c, g):
    """Learn from the examined positions."""
    for k in range(examined(c, False)):
        i = held[k]
        g.S[i] += c[k]
        g.N[i] += 1.0
        g.m[i] = g.S[i] / g.N[i]
        g.inverse[i] = 1.0 / (g.N[i] + 1.0)
        g.root[i] = math.sqrt(g.m[i] * (1.0 - g.m[i]) * g.inverse[i])


@njit_inline
def gaussians_of(r, L, g):
    """Those of replica r, which has L items."""
    return Gaussians(g.S[r, :L], g.N[r, :L], g.m[r, :L], g.root[r, :L], g.inverse[r, :L])


@njit_views
def rank_all(z, t, held, value, A, places, g):
    """``rank_one`` for each replica."""
    places, g = Places(*places), Gaussians(*g)
    for r in range(A.shape[0]):
        rank_one(z[r], t, gaussians_of(r, places.L[r], g), held, value)
        show(held, places.order, A[r])


@njit_views
def count_all(A, clicks, held, c, places, g):
    """``count_one`` for each replica."""
    places, g = Places(*places), Gaussians(*g)
    for r in range(A.shape[0]):
        read(A[r], clicks[r], places.order, held, c)
        count_one(held, c, gaussians_of(r, places.L[r], g))


class TSCascade:
    """TS-Cascade; ``order`` lists the positions in the order of examination."""

    NAME, PAPER = "TS-Cascade", "Zhong et al., JMLR 2021"
    KNOWS, READS, COST = ORDER, "up to the first click", "L"
    REFERENCE, FIGURE = paper.TSCascade, 17
    PARAMETERS: ClassVar = {"order": str}

    def __init__(self, setting: Setting, *, order: str = "descending") -> None:
        R, K, L = setting.R, setting.K, int(max(setting.L))
        self._places = places(setting, order)
        S, N, m, root = (np.zeros((R, L)) for _ in range(4))
        self._gaussians = Gaussians(S, N, m, root, np.ones((R, L)))
        self._state = plain(self._places, self._gaussians)
        self._uniforms = Uniforms(setting.generators, 1)
        self._held, self._c = np.empty(K, dtype=np.int64), np.empty(K, dtype=np.int64)
        self._value = np.empty(K)
        self._A = np.empty((R, K), dtype=np.int64)

    def recommend(self, t: int) -> Ints:
        """The lists (R, K) of step t."""
        z = ndtri(self._uniforms.at(t)[:, 0])
        rank_all(z, t, self._held, self._value, self._A, *self._state)
        return self._A

    def update(self, t: int, A: Ints, clicks: Ints) -> None:
        """Learn from the clicks on the lists A."""
        count_all(A, clicks, self._held, self._c, *self._state)
