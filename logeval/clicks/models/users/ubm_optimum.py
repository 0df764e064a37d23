"""The order of K items with the most expected clicks under the UBM, by branch and bound.

After position k the user's state is the position r of the last click. A user who could be
shown a different next item for every r gets at least as many clicks, so with R the items left

    U(R, r) = max_{i in R} e(k, r) w_i [1 + U(R - i, k)] + (1 - e(k, r) w_i) U(R - i, r)

bounds what is still to come, and a prefix with P(last click = r) known is dropped when its
clicks so far plus sum_r P(r) U(R, r) do not beat the best list found. U costs 2^K K^2 / 2.
"""

from __future__ import annotations

import numpy as np

from logeval.clicks.models.users.browsing import click_probs_one
from logeval.running.arrays import Floats, Ints
from logeval.running.kernels import njit

MAX_NODES = 2_000_000
SLACK = 1e-12  # differences below this are rounding


def best_order(w: Floats, e: Floats, to_beat: float, exact: bool) -> tuple[Ints, float, bool]:
    """Order, value, and whether no other order of these items is above max(value, to_beat)."""
    order = np.argsort(-w, kind="stable")
    if not exact:
        value = _improve(w, e, order)
        return order, value, False
    value = _expected_clicks(w[order], e)
    bound = adaptive_bound(w, e)
    complete = branch_and_bound(w, e, bound, max(value, to_beat), order)
    return order, _expected_clicks(w[order], e), complete


@njit(cache=True, nogil=True)
def _expected_clicks(w: Floats, e: Floats) -> float:
    p = np.empty(w.shape[0])
    click_probs_one(w, e, p, np.empty(w.shape[0] + 1))
    return p.sum()


@njit(cache=True, nogil=True)
def adaptive_bound(w: Floats, e: Floats) -> Floats:
    """U(R, r) for every set R of items left, as bits, and last click r."""
    K = w.shape[0]
    U = np.zeros((1 << K, K + 1))
    for R in range(1, 1 << K):
        left = 0
        for i in range(K):
            left += (R >> i) & 1
        k = K - left
        for r in range(k + 1):
            best = -1.0
            for i in range(K):
                if (R >> i) & 1:
                    rest = R ^ (1 << i)
                    x = e[k, r] * w[i]
                    value = x * (1.0 + U[rest, k + 1]) + (1.0 - x) * U[rest, r]
                    best = max(best, value)
            U[R, r] = best
    return U


@njit(cache=True, nogil=True)
def branch_and_bound(w: Floats, e: Floats, U: Floats, to_beat: float, order: Ints) -> bool:
    """Depth-first search for an order above ``to_beat``, written to ``order``.

    Returns whether the search was complete.
    """
    K = w.shape[0]
    last = np.zeros((K + 1, K + 1))  # P(last click = r) before each position
    got = np.zeros(K + 1)  # expected clicks above each position
    left = np.zeros(K + 1, dtype=np.int64)
    path = np.full(K, -1)
    tried = np.zeros(K, dtype=np.int64)  # items tried at each position, as bits
    last[0, 0] = 1.0
    left[0] = (1 << K) - 1
    k, nodes = 0, 0
    while k >= 0:
        best_i, best_bound = -1, to_beat + SLACK
        for i in range(K):
            if (left[k] >> i) & 1 and not (tried[k] >> i) & 1:
                rest = left[k] ^ (1 << i)
                bound, p = got[k], 0.0
                for r in range(k + 1):
                    clicked = last[k, r] * e[k, r] * w[i]
                    p += clicked
                    bound += (last[k, r] - clicked) * U[rest, r]
                bound += p * (1.0 + U[rest, k + 1])
                if bound > best_bound:
                    best_i, best_bound = i, bound
        nodes += 1
        if nodes > MAX_NODES:
            return False
        if best_i < 0:
            k -= 1
            continue
        tried[k] |= 1 << best_i
        path[k] = best_i
        p = 0.0
        for r in range(k + 1):
            clicked = last[k, r] * e[k, r] * w[best_i]
            p += clicked
            last[k + 1, r] = last[k, r] - clicked
        last[k + 1, k + 1] = p
        got[k + 1] = got[k] + p
        if k + 1 == K:
            if got[K] > to_beat:
                to_beat = float(got[K])
                order[:] = path
        else:
            left[k + 1] = left[k] ^ (1 << best_i)
            tried[k + 1] = 0
            k += 1
    return True


@njit(cache=True, nogil=True)
def _improve(w: Floats, e: Floats, order: Ints) -> float:
    """Swap pairs of positions as long as that helps."""
    K = w.shape[0]
    value = _expected_clicks(w[order], e)
    better = True
    while better:
        better = False
        for i in range(K):
            for j in range(i + 1, K):
                order[i], order[j] = order[j], order[i]
                swapped = _expected_clicks(w[order], e)
                if swapped > value + SLACK:
                    value, better = swapped, True
                else:
                    order[i], order[j] = order[j], order[i]
    return value
