"""The order of K items with the most expected clicks under the UBM, by branch and bound.

After position k the user's state is the position r of the last click. A user who could be
shown a different next item for every r gets at least as many clicks, so with R the items left

    U(R, r) = max_{i in R} e(k, r) w_i [1 + U(R - i, k)] + (1 - e(k, r) w_i) U(R - i, r)

bounds what is still to come, and a prefix with P(last click = r) known is dropped when its
clicks so far plus sum_r P(r) U(R, r) do not beat the best list found. U costs 2^K K^2 / 2.

The list with the highest expected reward, exact for every model here.

Closed forms, where sorting is enough (write w for attraction, items in descending order):
  browsing, any-click and PBM clicks: the k-th best item at the k-th most examined position
  (w e and -ln(1 - w e) are supermodular, so sorting both is optimal);
  DCM satisfaction: 1 - prod(1 - v w), likewise with v for e.

Chains. The value from position k down is V_k = a + m V_{k+1}, where a is what the item at k
earns and m the probability to go on; it grows with V_{k+1}.
  If a and m depend on the item only (CM, SDBN, DBN, CCM), exchanging neighbours shows that a
  given set is best in descending order of a / (1 - m), whatever follows. So the best set is
  found by dynamic programming over items in that order: ``best_by_index``, O(L K).
  For expected clicks of the DCM, V_k = V_{k+1} + w (1 - v_k V_{k+1}): a strong tail can make
  a weak item the better one at k. The value is linear in each w, so every item of some best
  list is at least, or at most, as attractive as all items left out: the j best and the K - j
  worst items, for some j. Each such set is solved by dynamic programming over its subsets.

UBM, expected clicks: again linear in each w, so the same sets; the order within a set is found
in ``ubm_optimum`` by branch and bound. Beyond ``EXACT_K`` positions, or when the bound does
not close within ``MAX_NODES``, the best list found is returned and marked as not proven.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from logeval.clicks.users.browsing import Browsing, click_probs_one
from logeval.clicks.users.chain import Chain
from logeval.errors import LogevalError
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


EXACT_K = 14  # 2^K subsets are tabulated


class Optimum(NamedTuple):
    """A best list, its expected reward, and whether it is proven that no list is better."""

    A: Ints
    value: float
    proven: bool
    gap: float  # by how much another list may be better at most; nan: that is not known


def best_chain(users: Chain, K: int, reward: str) -> tuple[Ints, bool]:
    """The best list of K items for the users of a chain, and whether that is proven."""
    users = users.counting(reward)
    w, skip, stay, sat = users.w, users.skip, users.stay_position[:K], users.sat_position[:K]
    if _alike(stay) and _alike(sat):
        a = w * users.sat_item * sat[0]
        return best_by_index(a, w * users.stay_item * stay[0] + (1.0 - w) * skip, K), True
    if skip == 1.0 and np.all(users.stay_item == 1.0):
        matched = np.all(users.sat_item == 1.0) and np.allclose(sat, 1.0 - stay)
        if reward == "satisfaction" and matched:
            return _sort_both(w, sat, K), True
        if reward == "clicks":
            return _best_dcm_clicks(w, 1.0 - stay, K)
    raise LogevalError(
        f"the best list by {reward} is not known for users whose staying or satisfaction depends "
        "on both item and position; choose another reward, as any-click, or override optimum"
    )


def best_browsing(users: Browsing, K: int, reward: str) -> tuple[Ints, bool]:
    """The best list of K items for browsing users, and whether that is proven."""
    e = users.e[:K, : K + 1]
    k, r = np.tril_indices(K)
    if reward == "any-click" or np.all(e[k, r] == e[k, 0]):
        return _sort_both(users.w, e[:, 0], K), True
    best, best_value, proven = _descending(users.w)[:K], -1.0, True
    for chosen in _extreme_sets(users.w, K):
        order, value, complete = best_order(users.w[chosen], e, best_value, exact=K <= EXACT_K)
        proven &= complete
        if value > best_value:
            best, best_value = chosen[order], value
    return best, proven


def best_by_index(a: Floats, m: Floats, K: int) -> Ints:
    """The list that maximises V_1 with V_k = a + m V_{k+1}: by index, over sets of K items.

    best[i, j] is the highest value of j items among the last i of the order; an item stands
    before those already chosen, since they come later in the order.
    """
    leave = 1.0 - m
    index = np.divide(a, leave, out=np.where(a > 0, np.inf, 0.0), where=leave > 0)
    order = np.argsort(-index, kind="stable")
    L = len(order)
    best = np.full((L + 1, K + 1), -np.inf)
    best[0, 0] = 0.0
    for i in range(1, L + 1):
        item = order[L - i]
        best[i] = best[i - 1]
        j = min(i, K)
        with_item = a[item] + m[item] * best[i - 1, :j]
        best[i, 1 : j + 1] = np.maximum(best[i - 1, 1 : j + 1], with_item)
    chosen, j = [], K
    for i in range(L, 0, -1):
        if j and best[i, j] > best[i - 1, j]:
            chosen.append(order[L - i])
            j -= 1
    return np.array(chosen)


def _best_dcm_clicks(w: Floats, v: Floats, K: int) -> tuple[Ints, bool]:
    best, best_value = _descending(w)[:K], -1.0
    for chosen in _extreme_sets(w, K):
        order = np.empty(K, dtype=np.int64)
        if K <= EXACT_K:
            value = dcm_order(w[chosen], v, order)
        else:  # neighbours are best with the more attractive one where termination is lower
            order[np.argsort(v, kind="stable")] = np.arange(K)
            value = 0.0
            for k in range(K - 1, -1, -1):
                value += w[chosen[order[k]]] * (1.0 - v[k] * value)
        if value > best_value:
            best, best_value = chosen[order], value
    monotone = bool(np.all(np.diff(v) >= 0) or np.all(np.diff(v) <= 0))
    return best, K <= EXACT_K or monotone


@njit(cache=True, nogil=True)
def dcm_order(w: Floats, v: Floats, order: Ints) -> float:
    """The order of K items with the most expected clicks: V(S), S the items of the last |S|."""
    K = w.shape[0]
    V = np.zeros(1 << K)
    choice = np.zeros(1 << K, dtype=np.int8)
    for S in range(1, 1 << K):
        size = 0
        for i in range(K):
            size += (S >> i) & 1
        V[S] = -1.0
        for i in range(K):
            if (S >> i) & 1:
                tail = V[S ^ (1 << i)]
                value = tail + w[i] * (1.0 - v[K - size] * tail)
                if value > V[S]:
                    V[S], choice[S] = value, i
    S = (1 << K) - 1
    for k in range(K):
        order[k] = choice[S]
        S ^= 1 << choice[S]
    return V[(1 << K) - 1]


def _extreme_sets(w: Floats, K: int) -> list[Ints]:
    """The j most and K - j least attractive items, j = K first."""
    order, L = _descending(w), len(w)
    sets = [np.concatenate([order[:j], order[L - (K - j) :]]) for j in range(K, -1, -1)]
    return sets if L > K else sets[:1]


def _sort_both(w: Floats, position: Floats, K: int) -> Ints:
    best = np.empty(K, dtype=np.int64)
    best[np.argsort(-position[:K], kind="stable")] = _descending(w)[:K]
    return best


def _descending(w: Floats) -> Ints:
    return np.argsort(-w, kind="stable")


def _alike(x: Floats) -> bool:
    return bool(np.all(x == x[0]))
