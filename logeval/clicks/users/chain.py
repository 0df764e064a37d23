"""Users who read from the top and may leave after each result: CM, DCM, SDBN, DBN, CCM.

One chain describes them all. The user examines position 1. At an examined position k with
item a the user clicks with probability w(a). After a click the user goes on to k+1 with
probability stay_item(a) * stay_position(k), after a skip with probability ``skip``. A click
satisfies with probability sat_item(a) * sat_position(k).

| model | stay_item | stay_position | skip  | sat_item | sat_position |
|-------|-----------|---------------|-------|----------|--------------|
| CM    | 1         | 0             | 1     | 1        | 1            |
| DCM   | 1         | 1 - v(k)      | 1     | 1        | v(k)         |
| DBN   | 1 - s(a)  | gamma         | gamma | s(a)     | 1            |
| CCM   | tau2 (1 - w(a)) + tau3 w(a) | 1 | tau1 | 1    | 0            |

A model writes its row of this table once, as ``Formulas`` of its parameters. Chuklin, Markov,
de Rijke: Click Models for Web Search (2015), chapter 3. SDBN is DBN with gamma = 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from logeval.running.arrays import Bools, Floats, Ints
from logeval.running.kernels import njit, njit_inline


@njit_inline
def sample_one(w: Floats, stay: Floats, skip: float, u: Floats, clicks: Ints) -> None:
    """Clicks of one user; one uniform per position decides the click and whether to go on.

    u < w stay: click, go on; u < w: click, leave; u < w + (1-w) skip: no click, go on.
    """
    K = w.shape[0]
    for k in range(K):
        clicks[k] = 0
    for k in range(K):
        if u[k] < w[k]:
            clicks[k] = 1
            if u[k] >= w[k] * stay[k]:
                break
        elif u[k] >= w[k] + (1.0 - w[k]) * skip:
            break


@njit_inline
def click_probs_one(w: Floats, stay: Floats, skip: float, p: Floats) -> None:
    """P(c_k = 1) = e_k w_k with e_1 = 1, e_{k+1} = e_k [w_k stay_k + (1 - w_k) skip]."""
    e = 1.0
    for k in range(w.shape[0]):
        p[k] = e * w[k]
        e *= w[k] * stay[k] + (1.0 - w[k]) * skip


@njit_inline
def conditional_one(w: Floats, stay: Floats, skip: float, clicks: Bools, p: Floats) -> None:
    """P(c_k = 1 | c_<k) = b_k w_k, where b_k = P(examined k | c_<k).

    After a click b = stay; after a skip b = skip b (1 - w) / (1 - b w).
    """
    b = 1.0
    for k in range(w.shape[0]):
        p[k] = b * w[k]
        if clicks[k]:
            b = stay[k]
        else:
            unclicked = 1.0 - p[k]
            b = skip * b * (1.0 - w[k]) / unclicked if unclicked > 0.0 else 0.0


@njit_inline
def reward_one(w: Floats, stay: Floats, skip: float, sat: Floats) -> float:
    """P(some click satisfies) = sum_k e_k w_k sat_k; see ``Chain.counting`` for other rewards."""
    e, total = 1.0, 0.0
    for k in range(w.shape[0]):
        total += e * w[k] * sat[k]
        e *= w[k] * stay[k] + (1.0 - w[k]) * skip
    return total


@njit_inline
def clicks_one(w: Floats, stay: Floats, skip: float) -> float:
    """Expected number of clicks, sum_k e_k w_k."""
    e, total = 1.0, 0.0
    for k in range(w.shape[0]):
        total += e * w[k]
        e *= w[k] * stay[k] + (1.0 - w[k]) * skip
    return total


@njit(cache=True, nogil=True)
def sample_rows(w: Floats, stay: Floats, skip: float, u: Floats, clicks: Ints) -> None:
    """``sample_one`` for each row."""
    for i in range(w.shape[0]):
        sample_one(w[i], stay[i], skip, u[i], clicks[i])


@njit(cache=True, nogil=True)
def click_probs_rows(w: Floats, stay: Floats, skip: float, p: Floats) -> None:
    """``click_probs_one`` for each row."""
    for i in range(w.shape[0]):
        click_probs_one(w[i], stay[i], skip, p[i])


@njit(cache=True, nogil=True)
def conditional_rows(w: Floats, stay: Floats, skip: float, clicks: Bools, p: Floats) -> None:
    """``conditional_one`` for each row."""
    for i in range(w.shape[0]):
        conditional_one(w[i], stay[i], skip, clicks[i], p[i])


@njit(cache=True, nogil=True)
def reward_rows(w: Floats, stay: Floats, skip: float, sat: Floats, out: Floats) -> None:
    """``reward_one`` for each row."""
    for i in range(w.shape[0]):
        out[i] = reward_one(w[i], stay[i], skip, sat[i])


@dataclass(frozen=True)
class Chain:
    """The users of one query, as arrays over its L items and K positions."""

    w: Floats  # (L,) attraction
    stay_item: Floats  # (L,)
    stay_position: Floats  # (K,)
    skip: float
    sat_item: Floats  # (L,)
    sat_position: Floats  # (K,)

    def _lists(self, A: Ints) -> tuple[Floats, Floats, Floats]:
        K = A.shape[1]
        return (
            self.w[A],
            self.stay_item[A] * self.stay_position[:K],
            self.sat_item[A] * self.sat_position[:K],
        )

    def click_probs(self, A: Ints) -> Floats:
        """P(c_k = 1) for each list (row of A)."""
        w, stay, _ = self._lists(A)
        p = np.empty_like(w)
        click_probs_rows(w, stay, self.skip, p)
        return p

    def conditional_click_probs(self, A: Ints, clicks: Ints | Bools) -> Floats:
        """P(c_k = 1 | c_<k) for each list and its clicks."""
        w, stay, _ = self._lists(A)
        p = np.empty_like(w)
        conditional_rows(w, stay, self.skip, np.asarray(clicks).astype(np.bool_), p)
        return p

    def sample(self, A: Ints, uniforms: Floats) -> Ints:
        """Clicks (n, K) of one user per list."""
        w, stay, _ = self._lists(A)
        clicks = np.empty(A.shape, dtype=np.int8)
        sample_rows(w, stay, self.skip, uniforms, clicks)
        return clicks

    def counting(self, reward: str) -> Chain:
        """Users who are satisfied by what the reward counts.

        Expected clicks: every click satisfies. P(at least one click): and ends the search.
        """
        if reward == "satisfaction":
            return self
        goes_on = self.stay_position if reward == "clicks" else np.zeros_like(self.stay_position)
        ones = np.ones_like(self.w), np.ones_like(goes_on)
        return Chain(self.w, self.stay_item, goes_on, self.skip, *ones)

    def expected_reward(self, A: Ints, reward: str) -> Floats:
        """Expected satisfaction, clicks, or any-click of each list."""
        w, stay, sat = self.counting(reward)._lists(A)
        out = np.empty(len(A))
        reward_rows(w, stay, self.skip, sat, out)
        return out


Parameters = Mapping[str, Any]  # by field; numbers and arrays that broadcast together
Formula = Callable[[Parameters], Any]


def one(x: Parameters) -> float:
    """The formula of what always happens."""
    return 1.0


@dataclass(frozen=True)
class Formulas:
    """Who goes on, and whom a click satisfies: a model's row of the table above.

    The formulas are evaluated wherever users are needed: on the items and positions of a query
    (``users``), on all items of a log (EM), and at each position of a list, where going on
    after a click is the product ``stay`` (intervals, the synthetic log).
    """

    stay_item: Formula = one
    stay_position: Formula = one
    skip: Formula = one
    sat_item: Formula = one
    sat_position: Formula = one

    def stay(self, x: Parameters) -> Floats:
        """P(go on | click) at each position of some lists, in the shape of ``x["w"]``."""
        return spread(self.stay_item(x) * self.stay_position(x), np.shape(x["w"]))

    def users(self, x: Parameters, K: int) -> Chain:
        """The users of one query."""
        L = len(x["w"])
        return Chain(
            x["w"],
            spread(self.stay_item(x), (L,)),
            spread(self.stay_position(x), (K,)),
            float(self.skip(x)),
            spread(self.sat_item(x), (L,)),
            spread(self.sat_position(x), (K,)),
        )


def spread(value: Floats | float, shape: tuple[int, ...]) -> Floats:
    """A number or an array in a larger shape, as kernels want it."""
    return np.ascontiguousarray(np.broadcast_to(value, shape), dtype=np.float64)
