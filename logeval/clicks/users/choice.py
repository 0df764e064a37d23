"""Users who choose: the results of a page compete for the clicks that a search has appetite for.

After j clicks, the last of them at position r on item a (j = r = 0: none yet), a user clicks once
more with the odds

    odds(more[j]) odds(depth[r]) / odds(s(a)) W_r^response,     W_r = sum_{k > r} w(a_k) b(k, r),

where odds(p) = p / (1 - p), and s has no part before the first click. The click is then on
position k > r with probability w(a_k) b(k, r) / W_r: what one result gets, others lose. How much
of what a list has to offer becomes clicks is the ``response``: at 1 this is a multinomial logit in
which leaving is one more choice, at 0 users have an appetite that no list changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logeval.running.arrays import Bools, Floats, Ints
from logeval.running.kernels import njit, njit_inline

LEAST = 1e-9  # of probabilities whose odds are taken, and of 1 minus them
MORE, DEPTH, PLACE = 0, 1, 2  # columns of ``places``: two odds, and b(k, r) in PLACE + r


def odds(p: Floats) -> Floats:
    """p / (1 - p)."""
    p = np.clip(p, LEAST, 1.0 - LEAST)
    return np.asarray(p / (1.0 - p))


@njit_inline
def offers(w, stay, places, response, r):
    """W_r, and the odds of one more click but for ``more``, the last being at r (0: none)."""
    W = 0.0
    for k in range(r, w.shape[0]):
        W += w[k] * places[k, PLACE + r]
    if W <= 0.0:
        return 1.0, 0.0
    x = places[r, DEPTH] * W**response
    if r > 0:
        x *= stay[r - 1]
    return W, x


@njit_inline
def goes_on(w, stay, places, response, j, r):
    """P(one more click) and W_r, after j clicks of which the last was at r (from 1; 0: none)."""
    W, x = offers(w, stay, places, response, r)
    x *= places[j, MORE]
    return x / (1.0 + x), W


@njit_inline
def follow_one(w, stay, places, response, u, clicks, p):
    """P(c_k = 1 | c_<k) of one user; where ``u`` has numbers, clicks are c_k = [u_k < p_k]."""
    r = j = 0
    go, W = goes_on(w, stay, places, response, j, r)
    passed = 0.0  # P(the next click is above k)
    for k in range(w.shape[0]):
        here = go * w[k] * places[k, PLACE + r] / W
        p[k] = min(here / max(1.0 - passed, here), 1.0) if here > 0.0 else 0.0
        passed += here
        if u.shape[0]:
            clicks[k] = 1 if u[k] < p[k] else 0
        if clicks[k] and k + 1 < w.shape[0]:
            r, j, passed = k + 1, j + 1, 0.0
            go, W = goes_on(w, stay, places, response, j, r)


@njit_inline
def click_probs_one(w, stay, places, response, p, reach):
    """P(c_k = 1), by the states (last click, clicks); ``reach`` is scratch, (K + 1, K + 1)."""
    K = w.shape[0]
    for r in range(K + 1):
        for j in range(K + 1):
            reach[r, j] = 0.0
    for k in range(K):
        p[k] = 0.0
    reach[0, 0] = 1.0
    for r in range(K):
        W, x = offers(w, stay, places, response, r)
        for j in range(r + 1):
            if reach[r, j] > 0.0:
                here = x * places[j, MORE]
                here *= reach[r, j] / ((1.0 + here) * W)
                for k in range(r, K):
                    clicked = here * w[k] * places[k, PLACE + r]
                    reach[k + 1, j + 1] += clicked
                    p[k] += clicked


@njit(cache=True, nogil=True)
def follow_rows(w, stay, places, response, u, clicks, p):
    """``follow_one`` for each row."""
    for i in range(w.shape[0]):
        follow_one(w[i], stay[i], places, response, u[i], clicks[i], p[i])


@njit(cache=True, nogil=True)
def click_probs_rows(w, stay, places, response, p):
    """``click_probs_one`` for each row."""
    reach = np.empty((w.shape[1] + 1, w.shape[1] + 1))
    for i in range(w.shape[0]):
        click_probs_one(w[i], stay[i], places, response, p[i], reach)


@njit(cache=True, nogil=True)
def credit_rows(w, stay, places, response, credit, first, second):
    """E X and E X^2 of each row, where a click at k adds ``credit[k]`` to X."""
    n, K = w.shape
    for i in range(n):
        m, q = np.zeros((K + 1, K + 1)), np.zeros((K + 1, K + 1))  # of what is still to come
        for r in range(K - 1, -1, -1):
            for j in range(r + 1):
                go, W = goes_on(w[i], stay[i], places, response, j, r)
                for k in range(r, K):
                    p, c = go * w[i, k] * places[k, PLACE + r] / W, credit[i, k]
                    m[r, j] += p * (c + m[k + 1, j + 1])
                    q[r, j] += p * (c * c + 2.0 * c * m[k + 1, j + 1] + q[k + 1, j + 1])
        first[i], second[i] = m[0, 0], q[0, 0]


@dataclass(frozen=True)
class Choice:
    """The users of one query, as arrays over its L items and K positions."""

    w: Floats  # (L,) attraction, beside that of the other results
    s: Floats  # (L,) satisfaction; 0.5 changes nothing
    b: Floats  # (K, K + 1) attraction of a position, given the last click (0: none)
    more: Floats  # (K,) of one more click, by the number of clicks so far
    depth: Floats  # (K,) of one more click, by the position of the last one (0: none)
    response: float

    @property
    def places(self) -> Floats:
        """What kernels take of positions, (K, K + 3)."""
        return np.column_stack([odds(self.more), odds(self.depth), self.b])

    def _lists(self, A: Ints) -> tuple[Floats, Floats, Floats, float]:
        places = np.ascontiguousarray(self.places[: A.shape[1]], dtype=np.float64)
        return self.w[A], odds(1.0 - self.s)[A], places, float(self.response)

    def click_probs(self, A: Ints) -> Floats:
        """P(c_k = 1) for each list (row of A)."""
        p = np.empty(A.shape)
        click_probs_rows(*self._lists(A), p)
        return p

    def conditional_click_probs(self, A: Ints, clicks: Ints | Bools) -> Floats:
        """P(c_k = 1 | c_<k) for each list and its clicks."""
        p, none = np.empty(A.shape), np.empty((len(A), 0))
        follow_rows(*self._lists(A), none, np.asarray(clicks).astype(np.int8), p)
        return p

    def sample(self, A: Ints, uniforms: Floats) -> Ints:
        """Clicks (n, K) of one user per list."""
        clicks = np.zeros(A.shape, dtype=np.int8)
        follow_rows(*self._lists(A), uniforms, clicks, np.empty(A.shape))
        return clicks

    def expected_reward(self, A: Ints, reward: str) -> Floats:
        """Expected clicks, or P(at least one click)."""
        if reward == "clicks":
            return self.click_probs(A).sum(axis=1)
        none = 1.0 - self.conditional_click_probs(A, np.zeros(A.shape, dtype=np.int8))
        return 1.0 - none.prod(axis=1)

    def credit_moments(self, A: Ints, credit: Floats) -> tuple[Floats, Floats]:
        """E X and E X^2 of the credits of clicks on each list."""
        first, second = np.empty(len(A)), np.empty(len(A))
        credit_rows(*self._lists(A), credit, first, second)
        return first, second
