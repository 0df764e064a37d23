"""Users whose examination of a position depends on it and on the previous click: UBM, PBM.

Position k is examined with probability e(k, r), where r is the position of the previous
click (0 for none), and an examined item a is clicked with probability w(a). In the PBM
e(k, r) = e(k). GCTR, RCTR and DCTR are the special cases with constant e, constant w, or
both.

Dupret and Piwowarski: A user browsing model to predict search engine click data from past
observations (SIGIR 2008). Chuklin et al. (2015), chapter 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logeval.running.arrays import Bools, Floats, Ints
from logeval.running.kernels import njit, njit_inline


@njit_inline
def sample_one(w: Floats, e: Floats, u: Floats, clicks: Ints) -> None:
    """Clicks of one user, c_k = [u_k < e(k, r) w_k]."""
    r = 0
    for k in range(w.shape[0]):
        clicks[k] = 1 if u[k] < e[k, r] * w[k] else 0
        if clicks[k]:
            r = k + 1


@njit_inline
def click_probs_one(w: Floats, e: Floats, p: Floats, last: Floats) -> None:
    """P(c_k = 1) = sum_r P(previous click at r) e(k, r) w_k; ``last`` is scratch, (K+1,)."""
    last[0] = 1.0
    for k in range(w.shape[0]):
        p[k] = 0.0
        for r in range(k + 1):
            clicked = last[r] * e[k, r] * w[k]
            p[k] += clicked
            last[r] -= clicked
        last[k + 1] = p[k]


@njit_inline
def conditional_one(w: Floats, e: Floats, clicks: Bools, p: Floats) -> None:
    """P(c_k = 1 | c_<k) = e(k, r) w_k."""
    r = 0
    for k in range(w.shape[0]):
        p[k] = e[k, r] * w[k]
        if clicks[k]:
            r = k + 1


@njit(cache=True, nogil=True)
def sample_rows(w: Floats, e: Floats, u: Floats, clicks: Ints) -> None:
    """``sample_one`` for each row."""
    for i in range(w.shape[0]):
        sample_one(w[i], e, u[i], clicks[i])


@njit(cache=True, nogil=True)
def click_probs_rows(w: Floats, e: Floats, p: Floats) -> None:
    """``click_probs_one`` for each row."""
    last = np.empty(w.shape[1] + 1)
    for i in range(w.shape[0]):
        click_probs_one(w[i], e, p[i], last)


@njit(cache=True, nogil=True)
def conditional_rows(w: Floats, e: Floats, clicks: Bools, p: Floats) -> None:
    """``conditional_one`` for each row."""
    for i in range(w.shape[0]):
        conditional_one(w[i], e, clicks[i], p[i])


@dataclass(frozen=True)
class Browsing:
    """The users of one query, as arrays over its L items and K positions."""

    w: Floats  # (L,) attraction
    e: Floats  # (K, K + 1) examination of a position, given the previous click (0: none)

    def click_probs(self, A: Ints) -> Floats:
        """P(c_k = 1) for each list (row of A)."""
        w = self.w[A]
        p = np.empty_like(w)
        click_probs_rows(w, self.e, p)
        return p

    def conditional_click_probs(self, A: Ints, clicks: Ints | Bools) -> Floats:
        """P(c_k = 1 | c_<k) for each list and its clicks."""
        w = self.w[A]
        p = np.empty_like(w)
        conditional_rows(w, self.e, np.asarray(clicks).astype(np.bool_), p)
        return p

    def sample(self, A: Ints, uniforms: Floats) -> Ints:
        """Clicks (n, K)."""
        clicks = np.empty(A.shape, dtype=np.int8)
        sample_rows(self.w[A], self.e, uniforms, clicks)
        return clicks

    def expected_reward(self, A: Ints, reward: str) -> Floats:
        """Expected clicks (the model's own reward), or P(at least one click)."""
        if reward == "clicks":
            return self.click_probs(A).sum(axis=1)
        none = 1.0 - self.w[A] * self.e[: A.shape[1], 0]
        return 1.0 - none.prod(axis=1)
