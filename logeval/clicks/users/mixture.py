"""Users that differ: each is of one of C classes, and clicks as that class does.

    P(clicks | list) = sum_c share(c) P_c(clicks | list)

What is linear in the users (click probabilities, rewards) is the mean over classes. What depends on
earlier clicks is the mean over the posterior of the class, which they change:

    P(c_k = 1 | c_<k) = sum_c P(c | c_<k) P_c(c_k = 1 | c_<k),   P(c | c_<k) ~ share(c) P_c(c_<k).

The best list for users in several classes: f(A) = sum_c share(c) f_c(A).

It is no longer found by sorting: what one class likes first may leave another unserved.

PBM clicks: f is a sum over positions of sum_c share(c) w_c(a) e_c(k), so the best list is an
assignment of items to positions, which is solved exactly.

Where every class earns 1 - prod_k (1 - v_c(k) w_c(a_k)) (satisfaction of a DCM or CM, any click of
a PBM), f grows with every w_c: an item that at least K others beat in every class is out. A list
from a search is then proven best, or not, by branch and bound: with S_c the
product over the positions filled so far, no list that begins so is worth more than

    sum_c share(c) (1 - S_c prod (1 - v w)),  the best items left for class c at its best positions.

Elsewhere the list from the search stands (climbing by exchanges from many lists), and
sum_c share(c) max f_c, which no list can exceed, says how far it may be from the best: the ``gap``.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from logeval.clicks.users.browsing import Browsing
from logeval.clicks.users.chain import Chain
from logeval.clicks.users.choice import Choice
from logeval.clicks.users.optimum import Optimum
from logeval.running.arrays import Bools, Floats, Ints
from logeval.running.kernels import njit

OfOneKind = Chain | Browsing | Choice


@dataclass(frozen=True)
class Mixture:
    """The users of one query: the share of each class, and its users."""

    share: Floats  # (C,)
    classes: tuple[OfOneKind, ...]

    @property
    def w(self) -> Floats:
        """(L,) attraction, on average over the classes."""
        return self._mean([users.w for users in self.classes])

    def _mean(self, values: list[Floats]) -> Floats:
        mean: Floats = np.tensordot(self.share, np.stack(values), axes=1)
        return mean

    def click_probs(self, A: Ints) -> Floats:
        """P(c_k = 1) for each list (row of A)."""
        return self._mean([users.click_probs(A) for users in self.classes])

    def conditional_click_probs(self, A: Ints, clicks: Ints | Bools) -> Floats:
        """P(c_k = 1 | c_<k) for each list and its clicks."""
        clicked = np.asarray(clicks).astype(np.bool_)
        p = np.stack([users.conditional_click_probs(A, clicked) for users in self.classes])
        with np.errstate(divide="ignore"):
            seen = np.log(np.where(clicked, p, 1.0 - p))  # (C, n, K)
            prior = np.log(self.share)[:, None, None]
        before = np.concatenate([np.zeros_like(seen[:, :, :1]), seen[:, :, :-1]], axis=2)
        weight = np.cumsum(before, axis=2) + prior
        most = weight.max(axis=0)
        weight = np.exp(weight - np.where(np.isfinite(most), most, 0.0))
        total = weight.sum(axis=0)
        weight /= np.where(total > 0.0, total, 1.0)
        found: Floats = (weight * p).sum(axis=0)
        return np.where(total > 0.0, found, self.click_probs(A))  # after clicks that cannot happen

    def sample(self, A: Ints, uniforms: Floats) -> Ints:
        """Clicks (n, K) of one user per list, from one uniform per position.

        The first one decides the class too: given the class, where it lies within the class's share
        is uniform again.
        """
        up_to, clicks = np.cumsum(self.share), np.zeros(A.shape, dtype=np.int8)
        up_to[-1] = 1.0
        drawn = np.searchsorted(up_to, uniforms[:, 0], side="right")
        for c, users in enumerate(self.classes):
            mine = np.flatnonzero(drawn == c)
            if len(mine):
                u = uniforms[mine]
                u[:, 0] = np.clip((u[:, 0] - up_to[c] + self.share[c]) / self.share[c], 0.0, 1.0)
                clicks[mine] = users.sample(A[mine], u)
        return clicks

    def expected_reward(self, A: Ints, reward: str) -> Floats:
        """The expected reward of each list, on average over the classes."""
        return self._mean([users.expected_reward(A, reward) for users in self.classes])


Users = OfOneKind | Mixture


def classes_of(users: Users) -> tuple[Floats, tuple[OfOneKind, ...]]:
    """Shares and classes; one class of all where users do not differ."""
    if isinstance(users, Mixture):
        return users.share, users.classes
    return np.ones(1), (users,)


MAX_NODES = 30_000  # of branch and bound: a tenth of a second; ten times as many prove little more
KICKS = 30  # of the search, in turn without success
FEW_KICKS = 4  # of users who choose, who are the same in most orders
SLACK = 1e-12  # differences below this are rounding


class Bounded(NamedTuple):
    """A list, and by how much at most another is better; 0: proven best, nan: not known."""

    A: Ints
    gap: float


def best_of_classes(users: Mixture, K: int, reward: str, own: list[Optimum]) -> Bounded:
    """The best list found; ``own`` are the best lists of each class by itself."""
    if reward == "clicks" and _position_based(users, K):
        return Bounded(_assignment(users, K), 0.0)
    starts = [one.A for one in own]
    positions = _product_form(users, K, reward)
    if positions is None:
        choose = any(isinstance(one, Choice) for one in users.classes)
        kicks = FEW_KICKS if choose else KICKS
        A, value = searched(users, K, reward, starts, np.arange(len(users.w)), kicks)
        if not all(one.proven for one in own):
            return Bounded(A, np.nan)
        return Bounded(A, max(float(users.share @ [one.value for one in own]) - value, 0.0))
    w = np.stack([u.w for u in users.classes]).astype(float)
    left = _undominated(w[users.share > 0.0], K)
    A, value = searched(users, K, reward, starts, left, kicks=0)
    order = np.argsort(
        -(users.share @ positions), kind="stable"
    )  # positions that matter most first
    found, bound = np.empty(K, dtype=np.int64), np.array([value])
    by_worth = left[np.argsort(-(users.share @ w[:, left]), kind="stable")]
    upper = branch_and_bound(
        users.share, np.ascontiguousarray(w[:, by_worth]),
        np.ascontiguousarray(positions[:, order]), MAX_NODES, found, bound,
    )  # fmt: skip
    if bound[0] > value:
        A = np.empty(K, dtype=np.int64)
        A[order] = by_worth[found]
        value = float(users.expected_reward(A[None], reward)[0])
    if upper <= value + SLACK:
        return Bounded(A, 0.0)
    A, value = searched(users, K, reward, [A], left)
    return Bounded(A, max(upper - value, 0.0))


def _position_based(users: Mixture, K: int) -> bool:
    return all(
        isinstance(u, Browsing) and np.ptp(u.e[:K], axis=1).max() == 0.0 for u in users.classes
    )


def _assignment(users: Mixture, K: int) -> Ints:
    from scipy.optimize import linear_sum_assignment  # at the top it slows down every command

    worth = np.zeros((len(users.w), K))
    for share, one in zip(users.share, users.classes, strict=True):
        assert isinstance(one, Browsing)
        worth += share * np.outer(one.w, one.e[:K, 0])
    item, position = linear_sum_assignment(worth, maximize=True)
    A = np.empty(K, dtype=np.int64)
    A[position] = item
    return A


def _product_form(users: Mixture, K: int, reward: str) -> Floats | None:
    """v_c(k), (C, K), where every class earns 1 - prod(1 - v_c(k) w_c); None elsewhere."""
    found = []
    for one in users.classes:
        if isinstance(one, Browsing):
            if reward != "any-click":
                return None
            found.append(one.e[:K, 0])
            continue
        if isinstance(one, Choice):
            return None
        chain = one.counting(reward)
        sat, stay = chain.sat_position[:K], chain.stay_position[:K]
        plain = (
            chain.skip == 1.0 and np.all(chain.stay_item == 1.0) and np.all(chain.sat_item == 1.0)
        )
        if not plain or not np.allclose(sat, 1.0 - stay):
            return None
        found.append(sat)
    return np.array(found, dtype=float)


def _undominated(w: Floats, K: int) -> Ints:
    """The items that fewer than K others beat in every class; of equal ones the first."""
    n = w.shape[1]
    beaten = np.zeros(n, dtype=np.int64)
    for i in range(n):
        as_good = (w >= w[:, i : i + 1]).all(axis=0)
        better = as_good & (w > w[:, i : i + 1]).any(axis=0)
        equal = as_good & ~better & (np.arange(n) < i)
        beaten[i] = int((better | equal).sum())
    return np.flatnonzero(beaten < K)


def searched(
    users: Mixture, K: int, reward: str, starts: list[Ints], items: Ints, kicks: int = KICKS
) -> tuple[Ints, float]:
    """The best list that climbing leads to: from some lists, then from changes to the best one.

    Every other change is a list at random. It ends when so many ``kicks`` in turn do not help.
    """
    rng, orders = np.random.default_rng(0), _orders(K)
    waiting = [*starts, items[np.argsort(-users.w[items], kind="stable")][:K]]
    best, best_value, vain = waiting[-1], -1.0, 0
    while waiting or vain < kicks:
        if waiting:
            A = waiting.pop()
        elif vain % 2:
            A = rng.permutation(items)[:K]
        else:
            A = best.copy()
            some = rng.choice(K, min(K, 3), replace=False)
            A[some] = np.roll(A[some], 1)
            if len(rest := np.setdiff1d(items, A)):
                A[some[0]] = rng.choice(rest)
        value, vain = -1.0, vain + 1
        while True:  # to the best neighbour, as long as one is better
            others = _neighbours(A, items, orders)
            values = users.expected_reward(others, reward)
            i = int(values.argmax())
            if values[i] <= value + SLACK:
                break
            A, value = others[i], float(values[i])
        if value > best_value + SLACK:
            best, best_value, vain = A, value, 0
    return best, best_value


def _orders(K: int) -> Ints:
    """The order itself, and all with two positions exchanged, or one moved elsewhere, (n, K)."""
    found = {tuple(range(K))}
    for i, j in itertools.permutations(range(K), 2):
        order = list(range(K))
        order[i], order[j] = j, i
        found.add(tuple(order))
        order = list(range(K))
        order.insert(j, order.pop(i))
        found.add(tuple(order))
    return np.array(sorted(found))


def _neighbours(A: Ints, items: Ints, orders: Ints) -> Ints:
    """All lists with these orders, or with one item replaced by another."""
    K, new = len(A), np.setdiff1d(items, A)
    replaced = np.repeat(A[None], K * len(new), axis=0)
    replaced[np.arange(K * len(new)), np.repeat(np.arange(K), len(new))] = np.tile(new, K)
    return np.concatenate([A[orders], replaced])


@njit(cache=True, nogil=True)
def best_rest(w: Floats, v: Floats, by_w: Ints, by_v: Ints, used: Bools, depth: int) -> float:
    """The smallest prod(1 - v w) over the positions from ``depth`` on: the best at the best.

    ``by_v`` are these positions, of one class, most important first.
    """
    product, i = 1.0, 0
    for d in range(by_v.shape[0]):
        k = by_v[d]
        if k < depth:
            continue
        while used[by_w[i]]:
            i += 1
        product *= 1.0 - v[k] * w[by_w[i]]
        i += 1
    return product


@njit(cache=True, nogil=True)
def branch_and_bound(
    share: Floats, w: Floats, v: Floats, most: int, best: Ints, value: Floats
) -> float:
    """Depth-first search for a list, ``best`` (item by position), above ``value[0]``.

    w is (C, L), v (C, K). Returns a value that no list exceeds: ``value[0]`` if the search was
    complete, else the largest bound of what was not searched.
    """
    C, L = w.shape
    K = v.shape[1]
    by_w = np.empty((C, L), dtype=np.int64)
    by_v = np.empty((C, K), dtype=np.int64)
    for c in range(C):
        by_w[c] = np.argsort(-w[c])
        by_v[c] = np.argsort(-v[c])
    used = np.zeros(L, dtype=np.bool_)
    survived = np.ones((K + 1, C))
    path = np.zeros(K, dtype=np.int64)
    bounds = np.empty((K, L))  # of putting each item at this depth
    alike = np.zeros(K, dtype=np.bool_)  # a position like the one before: items in ascending order
    for k in range(1, K):
        alike[k] = True
        for c in range(C):
            if v[c, k] != v[c, k - 1]:
                alike[k] = False
    nodes, depth, fresh = 0, 0, True
    unsearched = value[0]
    while depth >= 0:
        if fresh:
            for i in range(L):
                bounds[depth, i] = -1.0
                if used[i] or (alike[depth] and i < path[depth - 1]):
                    continue
                used[i] = True
                total = 0.0
                for c in range(C):
                    rest = best_rest(w[c], v[c], by_w[c], by_v[c], used, depth + 1)
                    total += share[c] * (
                        1.0 - survived[depth, c] * (1.0 - v[c, depth] * w[c, i]) * rest
                    )
                used[i] = False
                bounds[depth, i] = total
            nodes += 1
        i = int(np.argmax(bounds[depth]))
        if bounds[depth, i] <= value[0] + SLACK or nodes > most:
            if nodes > most:
                unsearched = max(unsearched, bounds[depth, i])
            depth -= 1
            if depth >= 0:
                used[path[depth]] = False
            fresh = False
            continue
        total = bounds[depth, i]
        bounds[depth, i] = -1.0
        path[depth] = i
        if depth == K - 1:
            value[0] = total
            best[:] = path
            fresh = False
            continue
        for c in range(C):
            survived[depth + 1, c] = survived[depth, c] * (1.0 - v[c, depth] * w[c, i])
        used[i] = True
        depth += 1
        fresh = True
    return max(unsearched, value[0])
